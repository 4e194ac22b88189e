/*
 * buf: an owning, growing text buffer (heap, not arena: dumps can be large).
 * Zero-initialised is an empty buffer; buf_free releases it.
 */
#ifndef TL_BASE_BUF_H
#define TL_BASE_BUF_H

#include "base/str.h"

#include <stdbool.h>
#include <stdio.h>

struct buf {
	char *p; /* NUL-terminated once anything was added */
	size_t n, cap;
	int indent; /* tabs that buf_line puts in front */
};

void buf_free(struct buf *buf);
void buf_add(struct buf *buf, const char *bytes, size_t n);
void buf_text(struct buf *buf, const char *text);
void buf_char(struct buf *buf, char c);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Indentation, the formatted text, a newline. */
void buf_line(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The shortest decimal text that reads back as the same double. */
void buf_double(struct buf *buf, double value);
struct str buf_str(const struct buf *buf);   /* borrows */
const char *buf_cstr(const struct buf *buf); /* "" when empty; borrows */
/* The text as a copy in the arena; the buffer is freed. */
char *buf_keep(struct buf *buf, struct arena *arena);

/* Whole file into `buf`; false with errno set. `limit_bytes` 0: none; a larger file gives EFBIG. */
bool buf_read_file(struct buf *buf, const char *path, size_t limit_bytes);
/* Writes through a temporary file and a rename, so that nothing half-written is left. False with
 * errno. */
bool buf_write_file(const struct buf *buf, const char *path);

#endif
