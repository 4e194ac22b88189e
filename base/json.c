/*
 * One level a container: whether it is an object and whether it has an item, which decides
 * about commas and line breaks.
 *
 *     json_object(&json);             {
 *     json_kint(&json, "line", 20);     "line": 20,
 *     json_key(&json, "ops");
 *     json_array(&json);                "ops": []
 *     json_end(&json);
 *     json_end(&json);                }
 */
#include "base/json.h"

#include <assert.h>
#include <math.h>

void json_init(struct json *json, struct buf *out)
{
	*json = (struct json){ .out = out };
}

/* A line break and the indentation of the current depth. */
static void new_line(struct json *json)
{
	buf_char(json->out, '\n');
	for (int i = 0; i < json->depth; i++)
		buf_text(json->out, "  ");
}

/* Separates a value (or a key) from what stands before it. */
static void before_item(struct json *json)
{
	bool *has_items = &json->has_items[json->depth];

	if (json->depth == 0) {
		assert(!*has_items && "one value makes a document");
		*has_items = true;
		return;
	}
	if (*has_items)
		buf_char(json->out, ',');
	*has_items = true;
	new_line(json);
}

/* After a key the value follows on its line; in an array it is an item. */
static void before_value(struct json *json)
{
	if (json->after_key) {
		json->after_key = false;
		return;
	}
	assert(!json->is_object[json->depth] && "an object's value needs a key");
	before_item(json);
}

/* Opens an object or array, empty so far. */
static void open_container(struct json *json, bool is_object)
{
	before_value(json);
	assert(json->depth + 1 < JSON_MAX_DEPTH);
	json->depth++;
	json->has_items[json->depth] = false;
	json->is_object[json->depth] = is_object;
	buf_char(json->out, is_object ? '{' : '[');
}

void json_object(struct json *json)
{
	open_container(json, true);
}

void json_array(struct json *json)
{
	open_container(json, false);
}

/* The document ends with a line break when its outermost container closes. */
void json_end(struct json *json)
{
	bool is_object = json->is_object[json->depth];
	bool has_items = json->has_items[json->depth];

	assert(json->depth > 0 && !json->after_key);
	json->depth--;
	if (has_items)
		new_line(json);
	buf_char(json->out, is_object ? '}' : ']');
	if (json->depth == 0)
		buf_char(json->out, '\n');
}

/* A character that may not stand in a string as it is (RFC 8259, section 7). */
static void add_escaped(struct buf *out, uint32_t c)
{
	switch (c) {
	case '"':
		buf_text(out, "\\\"");
		break;
	case '\\':
		buf_text(out, "\\\\");
		break;
	case '\n':
		buf_text(out, "\\n");
		break;
	case '\t':
		buf_text(out, "\\t");
		break;
	case '\r':
		buf_text(out, "\\r");
		break;
	default:
		buf_printf(out, "\\u%04x", (unsigned)c);
		break;
	}
}

/* The text in quotes; bytes that are no UTF-8 become U+FFFD. */
static void quote(struct buf *out, struct str text)
{
	uint32_t at = 0;

	buf_char(out, '"');
	while (at < text.n) {
		uint32_t begin = at;
		uint32_t c = str_char_at(text, &at);

		if (c == '"' || c == '\\' || c < 0x20 || c == 0x7f)
			add_escaped(out, c);
		else if (c == 0xfffd)
			buf_text(out, "\xef\xbf\xbd");
		else
			buf_add(out, text.p + begin, at - begin);
	}
	buf_char(out, '"');
}

void json_key(struct json *json, const char *key)
{
	assert(json->depth > 0 && json->is_object[json->depth] && !json->after_key);
	before_item(json);
	quote(json->out, str_of(key));
	buf_text(json->out, ": ");
	json->after_key = true;
}

/* NULL is the JSON null: a value that is not known. */
void json_string(struct json *json, const char *text)
{
	if (!text) {
		json_null(json);
		return;
	}
	before_value(json);
	quote(json->out, str_of(text));
}

void json_int(struct json *json, int64_t value)
{
	before_value(json);
	buf_printf(json->out, "%lld", (long long)value);
}

/* Infinities and NaN have no JSON form (RFC 8259, section 6): they become null. */
void json_double(struct json *json, double value)
{
	if (!isfinite(value)) {
		json_null(json);
		return;
	}
	before_value(json);
	buf_double(json->out, value);
}

void json_bool(struct json *json, bool value)
{
	before_value(json);
	buf_text(json->out, value ? "true" : "false");
}

void json_null(struct json *json)
{
	before_value(json);
	buf_text(json->out, "null");
}

/* `text` is a JSON value already and is not checked. */
void json_raw(struct json *json, const char *text)
{
	before_value(json);
	buf_text(json->out, text ? text : "null");
}

void json_kstring(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	json_string(json, text);
}

void json_kint(struct json *json, const char *key, int64_t value)
{
	json_key(json, key);
	json_int(json, value);
}

void json_kcount(struct json *json, const char *key, int64_t value)
{
	json_key(json, key);
	if (value < 0)
		json_null(json);
	else
		json_int(json, value);
}

void json_kdouble(struct json *json, const char *key, double value)
{
	json_key(json, key);
	json_double(json, value);
}

void json_kbool(struct json *json, const char *key, bool value)
{
	json_key(json, key);
	json_bool(json, value);
}
