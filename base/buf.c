/*
 * Capacity doubles, and one byte behind the text is always a NUL.  Files are written beside
 * their place and renamed, so that a reader sees the old text or the new one.
 */
#include "base/buf.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void buf_free(struct buf *buf)
{
	free(buf->p);
	*buf = (struct buf){ 0 };
}

/* Makes room for `n` more bytes and a NUL. */
static void buf_reserve(struct buf *buf, size_t n)
{
	size_t need, cap = buf->cap ? buf->cap : 256;
	char *p;

	if (n > SIZE_MAX / 2 - buf->n - 1) {
		fprintf(stderr, "tilelayout: out of memory (%zu bytes)\n", n);
		abort();
	}
	need = buf->n + n + 1;
	if (need <= buf->cap)
		return;
	while (cap < need)
		cap *= 2;
	p = realloc(buf->p, cap);
	if (!p) {
		fprintf(stderr, "tilelayout: out of memory (%zu bytes)\n", cap);
		abort();
	}
	buf->p = p;
	buf->cap = cap;
}

void buf_add(struct buf *buf, const char *bytes, size_t n)
{
	buf_reserve(buf, n);
	if (n)
		memcpy(buf->p + buf->n, bytes, n);
	buf->n += n;
	buf->p[buf->n] = 0;
}

void buf_text(struct buf *buf, const char *text)
{
	buf_add(buf, text, strlen(text));
}

void buf_char(struct buf *buf, char c)
{
	buf_add(buf, &c, 1);
}

/* Formats into the free room; a second pass only when the text did not fit. */
static void buf_vprintf(struct buf *buf, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

/* Formats into the free room; a second pass only when the text did not fit. */
static void buf_vprintf(struct buf *buf, const char *format, va_list args)
{
	va_list again;
	int n;

	va_copy(again, args);
	buf_reserve(buf, 120);
	n = vsnprintf(buf->p + buf->n, buf->cap - buf->n, format, args);
	assert(n >= 0);
	if ((size_t)n >= buf->cap - buf->n) {
		buf_reserve(buf, (size_t)n);
		vsnprintf(buf->p + buf->n, buf->cap - buf->n, format, again);
	}
	va_end(again);
	buf->n += (size_t)n;
}

void buf_printf(struct buf *buf, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	buf_vprintf(buf, format, args);
	va_end(args);
}

void buf_line(struct buf *buf, const char *format, ...)
{
	va_list args;

	for (int i = 0; i < buf->indent; i++)
		buf_char(buf, '\t');
	va_start(args, format);
	buf_vprintf(buf, format, args);
	va_end(args);
	buf_char(buf, '\n');
}

/* 15 digits are enough for most doubles, 17 for all (IEEE 754). */
void buf_double(struct buf *buf, double value)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	buf_text(buf, text);
}

struct str buf_str(const struct buf *buf)
{
	assert(buf->n <= UINT32_MAX);
	return (struct str){ buf_cstr(buf), (uint32_t)buf->n };
}

/* A buffer that never held anything has no memory; its text is "". */
const char *buf_cstr(const struct buf *buf)
{
	return buf->p ? buf->p : "";
}

char *buf_keep(struct buf *buf, struct arena *arena)
{
	char *copy = arena_strndup(arena, buf_cstr(buf), buf->n);

	buf_free(buf);
	return copy;
}

/* Reads to the end of `fd`; false with errno. */
static bool read_all(struct buf *buf, int fd, size_t limit_bytes)
{
	size_t start = buf->n;

	for (;;) {
		ssize_t got;

		buf_reserve(buf, 64 * 1024);
		got = read(fd, buf->p + buf->n, buf->cap - buf->n - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return false;
		if (got == 0)
			break;
		buf->n += (size_t)got;
		if (limit_bytes && buf->n - start > limit_bytes) {
			errno = EFBIG;
			return false;
		}
	}
	buf->p[buf->n] = 0;
	return true;
}

/* Reads what comes, whatever the file's size says: pipes and /proc have none. */
bool buf_read_file(struct buf *buf, const char *path, size_t limit_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int error;
	bool ok;

	if (fd < 0)
		return false;
	ok = read_all(buf, fd, limit_bytes);
	error = errno;
	close(fd);
	errno = error;
	return ok;
}

/* write(2) until all is out; signals and short writes are no errors. */
static bool write_all(int fd, const char *bytes, size_t n)
{
	while (n) {
		ssize_t put = write(fd, bytes, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return false;
		bytes += put;
		n -= (size_t)put;
	}
	return true;
}

/* Opens `path`, writes all and closes; false with errno. */
static bool write_path(const struct buf *buf, const char *path, int flags)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0666);
	int error;

	if (fd < 0)
		return false;
	if (!write_all(fd, buf_cstr(buf), buf->n)) {
		error = errno;
		close(fd);
		errno = error;
		return false;
	}
	return close(fd) == 0;
}

/* A device or a pipe is written directly: a rename would replace it.  A link is followed. */
bool buf_write_file(const struct buf *buf, const char *path)
{
	char resolved[PATH_MAX], temporary[PATH_MAX + 32];
	struct stat st;
	int error;

	if (stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode)) {
			errno = EISDIR;
			return false;
		}
		if (!S_ISREG(st.st_mode))
			return write_path(buf, path, 0);
		if (!realpath(path, resolved))
			return false;
		path = resolved;
	}
	if (strlen(path) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return false;
	}
	snprintf(temporary, sizeof(temporary), "%s.%ld.tmp", path, (long)getpid());
	if (write_path(buf, temporary, O_CREAT | O_TRUNC) && rename(temporary, path) == 0)
		return true;
	error = errno;
	unlink(temporary);
	errno = error;
	return false;
}
