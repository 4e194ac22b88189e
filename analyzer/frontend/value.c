/*
 * Values of the host: their names in messages, comparison, dicts, and their text as str() and as
 * JSON. Dicts are hashed; equal keys have equal hashes (1 and 1.0, an element type and its name).
 * Printing is bounded in depth and size, as lists may hold themselves many times over.
 */
#include "analyzer/frontend/value.h"

#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { MAX_PRINT_DEPTH = 20, MAX_PRINT_BYTES = 1 << 16 };

/* With its article where it is no type of Python's. */
const char *value_type_text(struct value value)
{
	static const char *const texts[] = {
		[V_ERROR] = "an error",
		[V_NONE] = "None",
		[V_BOOL] = "bool",
		[V_INT] = "int",
		[V_FLOAT] = "float",
		[V_STR] = "str",
		[V_TUPLE] = "tuple",
		[V_LIST] = "list",
		[V_SET] = "set",
		[V_DICT] = "dict",
		[V_RANGE] = "range",
		[V_SLICE] = "slice",
		[V_ELLIPSIS] = "...",
		[V_FUNCTION] = "a function",
		[V_BUILTIN] = "a function",
		[V_METHOD] = "a method",
		[V_MODULE] = "a module",
		[V_DTYPE] = "a type",
		[V_POLICY] = "a gemm policy",
		[V_OPAQUE] = "an unknown value",
		[V_ARGUMENTS] = "command line arguments",
		[V_KERNEL] = "a kernel",
		[V_TENSOR] = "a tensor type",
		[V_EXPR] = "a device expression",
		[V_BUFFER] = "a buffer",
		[V_REGION] = "a region of a buffer",
		[V_LOOP] = "a loop",
		[V_LAUNCH] = "a launch",
		[V_LAYOUT] = "a layout",
		[V_CONTEXT] = "a context",
	};

	return texts[value.kind];
}

/* An empty tuple, list or set. */
struct value value_sequence(struct arena *arena, enum value_kind kind)
{
	struct value value = { .kind = kind };

	value.as.sequence = arena_new(arena, struct sequence);
	return value;
}

/* A NUL stands behind the copy. */
struct value value_text(struct arena *arena, const char *text, size_t n)
{
	assert(n <= UINT32_MAX);
	return VALUE_STR(((struct str){ arena_strndup(arena, text, n), (uint32_t)n }));
}

bool value_is_sequence(struct value value)
{
	return value.kind == V_TUPLE || value.kind == V_LIST || value.kind == V_SET;
}

bool value_is_device(struct value value)
{
	return value.kind == V_EXPR || value.kind == V_REGION || value.kind == V_BUFFER;
}

/* bool is an int in Python. */
bool value_int(struct value value, int64_t *integer)
{
	if (value.kind == V_INT)
		*integer = value.as.integer;
	else if (value.kind == V_BOOL)
		*integer = value.as.boolean;
	else
		return false;
	return true;
}

/* float(value) without texts. */
bool value_number(struct value value, double *number)
{
	int64_t integer;

	if (value_int(value, &integer))
		*number = (double)integer;
	else if (value.kind == V_FLOAT)
		*number = value.as.number;
	else
		return false;
	return true;
}

/* In unsigned arithmetic, as begin and end may be far apart. */
int64_t range_count(const struct host_range *range)
{
	uint64_t distance, step;

	assert(range->step != 0);
	if (range->step > 0 ? range->begin >= range->end : range->begin <= range->end)
		return 0;
	distance = range->step > 0 ? (uint64_t)range->end - (uint64_t)range->begin
	                           : (uint64_t)range->begin - (uint64_t)range->end;
	step = range->step > 0 ? (uint64_t)range->step : 0 - (uint64_t)range->step;
	distance = (distance - 1) / step;
	return distance >= INT64_MAX ? INT64_MAX : (int64_t)distance + 1;
}

/* Element by element. */
static bool sequence_equal(const struct sequence *a, const struct sequence *b, uint32_t depth)
{
	if (a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++) {
		if (!value_equal(a->p[i], b->p[i], depth + 1))
			return false;
	}
	return true;
}

/* The order of keys does not count. */
static bool dict_equal(struct dict *a, struct dict *b, uint32_t depth)
{
	if (a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++) {
		struct dict_entry *other = dict_find(b, a->p[i].key);

		if (!other || !value_equal(a->p[i].value, other->value, depth + 1))
			return false;
	}
	return true;
}

/* A type equals another type and its own name: dtype == "float16". */
static bool dtype_value_equal(struct value a, struct value b)
{
	struct dtype type;

	if (b.kind == V_DTYPE)
		return dtype_equal(a.as.dtype, b.as.dtype);
	return b.kind == V_STR && dtype_parse(b.as.string, &type) && dtype_equal(a.as.dtype, type);
}

/* Numbers compare by value across types, containers element by element. */
bool value_equal(struct value a, struct value b, uint32_t depth)
{
	double x, y;
	int64_t i, j;

	if (depth > MAX_PRINT_DEPTH)
		return false;
	if (value_int(a, &i) && value_int(b, &j))
		return i == j;
	if (value_number(a, &x) && value_number(b, &y))
		return x == y;
	if (a.kind == V_DTYPE)
		return dtype_value_equal(a, b);
	if (b.kind == V_DTYPE)
		return dtype_value_equal(b, a);
	if (a.kind != b.kind)
		return false;
	if (a.kind == V_STR)
		return str_equal(a.as.string, b.as.string);
	if (value_is_sequence(a))
		return sequence_equal(a.as.sequence, b.as.sequence, depth);
	if (a.kind == V_DICT)
		return dict_equal(a.as.dict, b.as.dict, depth);
	if (a.kind == V_RANGE)
		return memcmp(a.as.range, b.as.range, sizeof(*a.as.range)) == 0;
	if (a.kind == V_NONE || a.kind == V_ELLIPSIS)
		return true;
	if (a.kind == V_MODULE)
		return a.as.module == b.as.module;
	if (a.kind == V_POLICY)
		return a.as.integer == b.as.integer;
	return a.as.expr == b.as.expr; /* all others: the same object */
}

/* Equal keys have equal hashes; kinds without a cheap hash share one. */
static uint64_t key_hash(struct value key, uint32_t depth)
{
	uint64_t hash = 17;
	struct dtype type;
	double number;

	if (value_number(key, &number)) {
		number = number == 0 ? 0 : number; /* -0.0 equals 0.0 */
		return hash_bytes(&number, sizeof(number), 1);
	}
	if (key.kind == V_STR && dtype_parse(key.as.string, &type)) /* equals the type of that name */
		return 2;
	if (key.kind == V_STR)
		return hash_bytes(key.as.string.p, key.as.string.n, 2);
	if (value_is_sequence(key) && depth < MAX_PRINT_DEPTH) {
		for (uint32_t i = 0; i < key.as.sequence->n; i++)
			hash = hash_mix(hash, key_hash(key.as.sequence->p[i], depth + 1));
		return hash;
	}
	return key.kind == V_DTYPE ? 2 : 3;
}

/* Along the chain of entries with the key's hash. */
struct dict_entry *dict_find(struct dict *dict, struct value key)
{
	const struct map_entry *first = map_find(&dict->first, key_hash(key, 0));

	for (uint32_t at = first ? (uint32_t)first->value.number : 0; at; at = dict->p[at - 1].next) {
		if (value_equal(dict->p[at - 1].key, key, 0))
			return &dict->p[at - 1];
	}
	return NULL;
}

/* Puts entry `at` in front of its chain. */
static void dict_link(struct arena *arena, struct dict *dict, uint32_t at)
{
	struct map_entry *first = map_at(arena, &dict->first, key_hash(dict->p[at].key, 0));

	assert(at < dict->n);
	dict->p[at].next = (uint32_t)first->value.number;
	first->value.number = at + 1;
}

/* A new key goes to the end, an old one keeps its place. */
void dict_set(struct arena *arena, struct dict *dict, struct value key, struct value value)
{
	struct dict_entry *entry = dict_find(dict, key);

	if (entry) {
		entry->value = value;
		return;
	}
	vec_push(arena, dict, (struct dict_entry){ .key = key, .value = value });
	dict_link(arena, dict, dict->n - 1);
}

/* Entries behind it move up; their links are made anew. */
void dict_remove(struct arena *arena, struct dict *dict, struct dict_entry *entry)
{
	assert(entry >= dict->p && entry < dict->p + dict->n);
	memmove(entry, entry + 1, (size_t)(dict->p + dict->n - entry - 1) * sizeof(*entry));
	dict->n--;
	dict->first = (struct map){ 0 };
	for (uint32_t i = 0; i < dict->n; i++)
		dict_link(arena, dict, i);
}

/* A float always shows that it is one. */
static void print_number(struct buf *out, double number)
{
	size_t begin = out->n;

	if (isnan(number) || isinf(number)) {
		buf_text(out, isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
		return;
	}
	buf_double(out, number);
	if (!strpbrk(out->p + begin, ".e"))
		buf_text(out, ".0");
}

/* repr() in single quotes. */
static void print_string(struct buf *out, struct str text, bool is_repr)
{
	if (!is_repr) {
		buf_add(out, text.p, text.n);
		return;
	}
	buf_char(out, '\'');
	for (uint32_t i = 0; i < text.n; i++) {
		if (text.p[i] == '\'' || text.p[i] == '\\')
			buf_char(out, '\\');
		if (text.p[i] == '\n')
			buf_text(out, "\\n");
		else
			buf_char(out, text.p[i]);
	}
	buf_char(out, '\'');
}

/* Brackets by kind; a tuple of one keeps its comma. */
static void print_sequence(struct buf *out, struct value value, uint32_t depth)
{
	const struct sequence *seq = value.as.sequence;

	buf_char(out, value.kind == V_TUPLE ? '(' : value.kind == V_LIST ? '[' : '{');
	for (uint32_t i = 0; i < seq->n; i++) {
		if (i)
			buf_text(out, ", ");
		value_print(out, seq->p[i], true, depth + 1);
	}
	if (value.kind == V_TUPLE && seq->n == 1)
		buf_char(out, ',');
	buf_char(out, value.kind == V_TUPLE ? ')' : value.kind == V_LIST ? ']' : '}');
}

/* Keys and values by repr(). */
static void print_dict(struct buf *out, const struct dict *dict, uint32_t depth)
{
	buf_char(out, '{');
	for (uint32_t i = 0; i < dict->n; i++) {
		if (i)
			buf_text(out, ", ");
		value_print(out, dict->p[i].key, true, depth + 1);
		buf_text(out, ": ");
		value_print(out, dict->p[i].value, true, depth + 1);
	}
	buf_char(out, '}');
}

/* Nested values stop at a depth, long ones at a size. */
void value_print(struct buf *out, struct value value, bool is_repr, uint32_t depth)
{
	char name[32];

	if (depth > MAX_PRINT_DEPTH || out->n > MAX_PRINT_BYTES)
		buf_text(out, "...");
	else if (value.kind == V_NONE)
		buf_text(out, "None");
	else if (value.kind == V_BOOL)
		buf_text(out, value.as.boolean ? "True" : "False");
	else if (value.kind == V_INT)
		buf_printf(out, "%lld", (long long)value.as.integer);
	else if (value.kind == V_FLOAT)
		print_number(out, value.as.number);
	else if (value.kind == V_STR)
		print_string(out, value.as.string, is_repr);
	else if (value_is_sequence(value))
		print_sequence(out, value, depth);
	else if (value.kind == V_DICT)
		print_dict(out, value.as.dict, depth);
	else if (value.kind == V_DTYPE)
		buf_text(out, dtype_name(value.as.dtype, name));
	else if (value.kind == V_OPAQUE)
		buf_text(out, value.as.opaque->text);
	else
		buf_printf(out, "<%s>", value_type_text(value));
}

/* Quotes, backslashes and control characters are escaped. */
static void json_text(struct buf *out, struct str text)
{
	buf_char(out, '"');
	for (uint32_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c < 0x20)
			buf_printf(out, "\\u%04x", c);
		else
			buf_char(out, (char)c);
	}
	buf_char(out, '"');
}

/* Keys by their str(). */
static void json_dict(struct buf *out, const struct dict *dict, uint32_t depth)
{
	buf_char(out, '{');
	for (uint32_t i = 0; i < dict->n; i++) {
		struct buf key = { 0 };

		if (i)
			buf_text(out, ", ");
		value_print(&key, dict->p[i].key, false, depth + 1);
		json_text(out, buf_str(&key));
		buf_free(&key);
		buf_text(out, ": ");
		value_json(out, dict->p[i].value, depth + 1);
	}
	buf_char(out, '}');
}

/* Tuples, lists and sets alike. */
static void json_sequence(struct buf *out, const struct sequence *seq, uint32_t depth)
{
	buf_char(out, '[');
	for (uint32_t i = 0; i < seq->n; i++) {
		if (i)
			buf_text(out, ", ");
		value_json(out, seq->p[i], depth + 1);
	}
	buf_char(out, ']');
}

/* What JSON cannot say becomes the text of str(). */
void value_json(struct buf *out, struct value value, uint32_t depth)
{
	struct buf text = { 0 };

	if (depth > MAX_PRINT_DEPTH || out->n > MAX_PRINT_BYTES) {
		buf_text(out, "null");
	} else if (value.kind == V_NONE) {
		buf_text(out, "null");
	} else if (value.kind == V_BOOL) {
		buf_text(out, value.as.boolean ? "true" : "false");
	} else if (value.kind == V_INT) {
		buf_printf(out, "%lld", (long long)value.as.integer);
	} else if (value.kind == V_FLOAT && isfinite(value.as.number)) {
		print_number(out, value.as.number);
	} else if (value.kind == V_STR) {
		json_text(out, value.as.string);
	} else if (value.kind == V_BUILTIN) {
		json_text(out, str_of(value.as.builtin->name));
	} else if (value.kind == V_POLICY) {
		json_text(out, str_of(gemm_policy_text((enum gemm_policy)value.as.integer)));
	} else if (value_is_sequence(value)) {
		json_sequence(out, value.as.sequence, depth);
	} else if (value.kind == V_DICT) {
		json_dict(out, value.as.dict, depth);
	} else {
		value_print(&text, value, false, depth);
		json_text(out, buf_str(&text));
		buf_free(&text);
	}
}
