/*
 * lang_names: every name of tilelang.language and what this version does with it.
 */
#ifndef TL_FRONTEND_LANG_NAMES_H
#define TL_FRONTEND_LANG_NAMES_H

#include "base/arena.h"
#include "base/vec.h"

enum lang_status {
	LANG_TAKEN,         /* becomes tile program, or a value while the file is evaluated */
	LANG_HINT,          /* accepted without an effect */
	LANG_NOT_SUPPORTED, /* known, and refused (E0204) */
};

struct lang_name {
	const char *name; /* without "T." */
	enum lang_status status;
};

struct lang_name_list {
	vec_of(struct lang_name) names; /* sorted by name */
};

/* Names of functions; element types are not among them. The list lives in `arena`. */
void lang_names(struct arena *arena, struct lang_name_list *out);

#endif
