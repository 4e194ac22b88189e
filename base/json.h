/*
 * json: a writer that cannot produce ill-formed output (it asserts on misuse).
 * Two-space indentation, keys in call order, doubles in shortest form, NaN and infinity as null;
 * a newline ends the document.
 */
#ifndef TL_BASE_JSON_H
#define TL_BASE_JSON_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum { JSON_MAX_DEPTH = 64 };

struct json {
	struct buf *out;
	int depth;
	bool has_items[JSON_MAX_DEPTH];
	bool is_object[JSON_MAX_DEPTH];
	bool after_key;
};

void json_init(struct json *json, struct buf *out);
void json_object(struct json *json); /* { */
void json_array(struct json *json);  /* [ */
void json_end(struct json *json);    /* closes the innermost */
void json_key(struct json *json, const char *key);
void json_string(struct json *json,
                 const char *text); /* NULL gives null; invalid UTF-8 is replaced */
void json_int(struct json *json, int64_t value);
void json_double(struct json *json, double value);
void json_bool(struct json *json, bool value);
void json_null(struct json *json);
/* text that is a JSON value already; NULL gives null */
void json_raw(struct json *json, const char *text);
/* key and value in one call */
void json_kstring(struct json *json, const char *key, const char *text);
void json_kint(struct json *json, const char *key, int64_t value);
/* A count that may be unknown: what is below 0 is null. */
void json_kcount(struct json *json, const char *key, int64_t value);
void json_kdouble(struct json *json, const char *key, double value);
void json_kbool(struct json *json, const char *key, bool value);

#endif
