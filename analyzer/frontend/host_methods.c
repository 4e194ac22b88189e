/*
 * Methods of host values: strings, lists, tuples, dicts, sets, types (Python library reference,
 * "Built-in Types"). The object is call->self. Calls of methods of lists, dicts and sets count as
 * effects (call_builtin), since most of them change their object.
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

/* Strings */

/* The argument as a string; false after an error. */
static bool text_arg(struct eval *ev, const struct call *call, uint32_t slot, struct str *text)
{
	if (call->slot[slot]->value.kind == V_STR) {
		*text = call->slot[slot]->value.as.string;
		return true;
	}
	if (call->slot[slot]->value.kind != V_ERROR)
		ev_error(ev, DIAG_E0202, call->slot[slot]->span, "%s needs a string", call->name);
	return false;
}

/* Bytewise, which is right for UTF-8. */
static bool ends_with(struct str text, struct str end)
{
	return text.n >= end.n && memcmp(text.p + text.n - end.n, end.p, end.n) == 0;
}

/* startswith and endswith, of one string or of any in a tuple. */
static struct value s_starts(struct eval *ev, struct call *call)
{
	bool is_end = strcmp(call->builtin->name, "endswith") == 0;
	struct value arg = call->slot[0]->value;
	struct sequence items = { 0 };

	if (arg.kind == V_TUPLE)
		items = *arg.as.sequence;
	else
		vec_push(ev->cx->arena, &items, arg);
	for (uint32_t i = 0; i < items.n; i++) {
		struct str part, text = call->self.as.string;

		if (items.p[i].kind != V_STR)
			return items.p[i].kind == V_OPAQUE
			           ? items.p[i]
			           : ev_error(ev, DIAG_E0202, call->span, "%s needs strings", call->name);
		part = items.p[i].as.string;
		if (is_end ? ends_with(text, part)
		           : text.n >= part.n && memcmp(text.p, part.p, part.n) == 0)
			return VALUE_BOOL(true);
	}
	return VALUE_BOOL(false);
}

/* upper and lower, of ASCII letters; others stay. */
static struct value s_case(struct eval *ev, struct call *call)
{
	bool is_upper = strcmp(call->builtin->name, "upper") == 0;
	struct value result = value_text(ev->cx->arena, call->self.as.string.p, call->self.as.string.n);
	char *p = arena_strndup(ev->cx->arena, call->self.as.string.p, call->self.as.string.n);

	for (uint32_t i = 0; i < result.as.string.n; i++)
		p[i] = (char)(is_upper ? toupper((unsigned char)p[i]) : tolower((unsigned char)p[i]));
	result.as.string.p = p;
	return result;
}

/* strip, lstrip, rstrip of blanks or of the given characters. */
static struct value s_strip(struct eval *ev, struct call *call)
{
	struct str text = call->self.as.string, set = str_of(" \t\n\r");
	char side = call->builtin->name[0];

	if (call->slot[0] && call->slot[0]->value.kind != V_NONE && !text_arg(ev, call, 0, &set))
		return VALUE_ERROR;
	while (side != 'r' && text.n && memchr(set.p, text.p[0], set.n))
		text.p++, text.n--;
	while (side != 'l' && text.n && memchr(set.p, text.p[text.n - 1], set.n))
		text.n--;
	return VALUE_STR(text);
}

/* By a separator, or by runs of blanks without one. Parts are slices of the text itself. */
static struct value s_split(struct eval *ev, struct call *call)
{
	struct value result = value_sequence(ev->cx->arena, V_LIST);
	struct str text = call->self.as.string, sep = { 0 };
	uint32_t at = 0;

	if (call->slot[0] && call->slot[0]->value.kind != V_NONE && !text_arg(ev, call, 0, &sep))
		return VALUE_ERROR;
	while (at <= text.n && ev_step(ev, call->span)) {
		uint32_t end = at, skip = 1;

		if (sep.n == 0) {
			while (at < text.n && isspace((unsigned char)text.p[at]))
				at++;
			if (at == text.n)
				break;
			for (end = at; end < text.n && !isspace((unsigned char)text.p[end]);)
				end++;
		} else {
			const char *found = memmem(text.p + at, text.n - at, sep.p, sep.n);

			end = found ? (uint32_t)(found - text.p) : text.n;
			skip = sep.n;
		}
		vec_push(ev->cx->arena, result.as.sequence,
		         VALUE_STR(((struct str){ text.p + at, end - at })));
		if (end >= text.n)
			break;
		at = end + skip;
	}
	return result;
}

/* Elements by their str(). */
static struct value s_join(struct eval *ev, struct call *call)
{
	struct sequence items = { 0 };
	struct buf out = { 0 };
	struct value result;

	if (!eval_elements(ev, call->slot[0]->value, call->slot[0]->span, &items))
		return VALUE_ERROR;
	for (uint32_t i = 0; i < items.n; i++) {
		if (i)
			buf_add(&out, call->self.as.string.p, call->self.as.string.n);
		value_print(&out, items.p[i], false, 0);
	}
	result = value_text(ev->cx->arena, buf_cstr(&out), out.n);
	buf_free(&out);
	return result;
}

/* From left to right, not again inside what was put in; results are bounded at 1 MiB. */
static struct value s_replace(struct eval *ev, struct call *call)
{
	struct str text = call->self.as.string, from, to;
	struct buf out = { 0 };
	struct value result;
	uint32_t at = 0;

	if (!text_arg(ev, call, 0, &from) || !text_arg(ev, call, 1, &to))
		return VALUE_ERROR;
	if (from.n == 0)
		return call->self;
	while (at < text.n && ev_step(ev, call->span) && out.n < (1u << 20)) {
		const char *found = memmem(text.p + at, text.n - at, from.p, from.n);
		uint32_t end = found ? (uint32_t)(found - text.p) : text.n;

		buf_add(&out, text.p + at, end - at);
		if (found)
			buf_add(&out, to.p, to.n);
		at = found ? end + from.n : text.n;
	}
	result = value_text(ev->cx->arena, buf_cstr(&out), out.n);
	buf_free(&out);
	return result;
}

/* The first place, -1 when there is none. */
static struct value s_find(struct eval *ev, struct call *call)
{
	struct str text = call->self.as.string, part;
	const char *found;

	if (!text_arg(ev, call, 0, &part))
		return VALUE_ERROR;
	found = part.n ? memmem(text.p, text.n, part.p, part.n) : text.p;
	return VALUE_INT(found ? found - text.p : -1);
}

/* "{} and {name}".format(...): plain fields; formats are left out. */
static struct value s_format(struct eval *ev, struct call *call)
{
	struct str text = call->self.as.string;
	struct buf out = { 0 };
	uint32_t next = 0;
	struct value result;

	for (uint32_t i = 0; i < text.n; i++) {
		uint32_t end = i;

		if ((text.p[i] == '{' || text.p[i] == '}') && i + 1 < text.n &&
		    text.p[i + 1] == text.p[i]) {
			buf_char(&out, text.p[i++]);
			continue;
		}
		while (text.p[i] == '{' && end < text.n && text.p[end] != '}')
			end++;
		if (text.p[i] != '{' || end >= text.n) {
			buf_char(&out, text.p[i]);
			continue;
		}
		if (end == i + 1 && next < call->args.n && !call->args.p[next].name) {
			value_print(&out, call->args.p[next++].value, false, 0);
		} else {
			for (uint32_t j = 0; j < call->args.n; j++) {
				if (call->args.p[j].name && str_is((struct str){ text.p + i + 1, end - i - 1 },
				                                   sym_text(ev->cx->names, call->args.p[j].name)))
					value_print(&out, call->args.p[j].value, false, 0);
			}
		}
		i = end;
	}
	result = value_text(ev->cx->arena, buf_cstr(&out), out.n);
	buf_free(&out);
	return result;
}

/* isdigit and isalpha: every character, and at least one. */
static struct value s_is(struct eval *ev, struct call *call)
{
	bool is_digit = strcmp(call->builtin->name, "isdigit") == 0;
	struct str text = call->self.as.string;

	(void)ev;
	for (uint32_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (is_digit ? !isdigit(c) : !isalpha(c))
			return VALUE_BOOL(false);
	}
	return VALUE_BOOL(text.n > 0);
}

/* Lists */

/* In place: other names of the list see it. */
static struct value l_append(struct eval *ev, struct call *call)
{
	vec_push(ev->cx->arena, call->self.as.sequence, call->slot[0]->value);
	return VALUE_NONE;
}

/* The elements of any iterable. */
static struct value l_extend(struct eval *ev, struct call *call)
{
	struct sequence items = { 0 };

	if (!eval_elements(ev, call->slot[0]->value, call->slot[0]->span, &items))
		return VALUE_ERROR;
	for (uint32_t i = 0; i < items.n; i++)
		vec_push(ev->cx->arena, call->self.as.sequence, items.p[i]);
	return VALUE_NONE;
}

/* The last element, or the one at an index, which may count from the end. */
static struct value l_pop(struct eval *ev, struct call *call)
{
	struct sequence *seq = call->self.as.sequence;
	int64_t at = -1;
	struct value item;

	if (!arg_int(ev, call, 0, &at))
		return VALUE_ERROR;
	at += at < 0 ? seq->n : 0;
	if (at < 0 || at >= seq->n)
		return ev_error(ev, DIAG_E0215, call->span, "the list has no such element to pop");
	item = seq->p[at];
	memmove(seq->p + at, seq->p + at + 1, (size_t)(seq->n - at - 1) * sizeof(*seq->p));
	seq->n--;
	return item;
}

/* Indices outside the list mean its ends. */
static struct value l_insert(struct eval *ev, struct call *call)
{
	struct sequence *seq = call->self.as.sequence;
	int64_t at = 0;

	if (!arg_int(ev, call, 0, &at))
		return VALUE_ERROR;
	at += at < 0 ? seq->n : 0;
	at = at < 0 ? 0 : at > seq->n ? seq->n : at;
	assert(at >= 0 && at <= seq->n);
	vec_push(ev->cx->arena, seq, VALUE_NONE);
	memmove(seq->p + at + 1, seq->p + at, (size_t)(seq->n - 1 - at) * sizeof(*seq->p));
	seq->p[at] = call->slot[1]->value;
	return VALUE_NONE;
}

/* index and count. */
static struct value l_index(struct eval *ev, struct call *call)
{
	bool is_count = strcmp(call->builtin->name, "count") == 0;
	const struct sequence *seq = call->self.as.sequence;
	int64_t n = 0;

	for (uint32_t i = 0; i < seq->n; i++) {
		if (!value_equal(seq->p[i], call->slot[0]->value, 0))
			continue;
		if (!is_count)
			return VALUE_INT(i);
		n++;
	}
	return is_count ? VALUE_INT(n)
	                : ev_error(ev, DIAG_E0215, call->span, "the value is not in the %s",
	                           value_type_text(call->self));
}

/* In place. */
static struct value l_reverse(struct eval *ev, struct call *call)
{
	struct sequence *seq = call->self.as.sequence;

	(void)ev;
	for (uint32_t i = 0; i < seq->n / 2; i++) {
		struct value swap = seq->p[i];

		seq->p[i] = seq->p[seq->n - 1 - i];
		seq->p[seq->n - 1 - i] = swap;
	}
	return VALUE_NONE;
}

/* Elements are shared, as in Python. */
static struct value l_copy(struct eval *ev, struct call *call)
{
	struct value result = value_sequence(ev->cx->arena, call->self.kind);

	for (uint32_t i = 0; i < call->self.as.sequence->n; i++)
		vec_push(ev->cx->arena, result.as.sequence, call->self.as.sequence->p[i]);
	return result;
}

/* Only when no equal element is there. */
static struct value set_add(struct eval *ev, struct call *call)
{
	const struct sequence *seq = call->self.as.sequence;

	for (uint32_t i = 0; i < seq->n && ev_step(ev, call->span); i++) {
		if (value_equal(seq->p[i], call->slot[0]->value, 0))
			return VALUE_NONE;
	}
	return l_append(ev, call);
}

/* Dicts */

/* None, or the given default, when the key is not there. */
static struct value d_get(struct eval *ev, struct call *call)
{
	const struct dict_entry *entry = dict_find(call->self.as.dict, call->slot[0]->value);

	(void)ev;
	return entry ? entry->value : call->slot[1] ? call->slot[1]->value : VALUE_NONE;
}

/* The value that is there, else the default, which then is. */
static struct value d_setdefault(struct eval *ev, struct call *call)
{
	struct value value = call->slot[1] ? call->slot[1]->value : VALUE_NONE;
	const struct dict_entry *entry = dict_find(call->self.as.dict, call->slot[0]->value);

	if (entry)
		return entry->value;
	dict_set(ev->cx->arena, call->self.as.dict, call->slot[0]->value, value);
	return value;
}

/* The value of the key, which leaves the dict; the default when there is none. */
static struct value d_pop(struct eval *ev, struct call *call)
{
	struct dict *dict = call->self.as.dict;
	struct dict_entry *entry = dict_find(dict, call->slot[0]->value);
	struct value value;

	if (!entry)
		return call->slot[1]
		           ? call->slot[1]->value
		           : ev_error(ev, DIAG_E0215, call->span, "the dict has no such key to pop");
	value = entry->value;
	dict_remove(ev->cx->arena, dict, entry);
	return value;
}

/* Pairs of another dict, and keywords. */
static struct value d_update(struct eval *ev, struct call *call)
{
	for (uint32_t i = 0; i < call->args.n; i++) {
		const struct arg *arg = &call->args.p[i];

		if (arg->name) {
			dict_set(ev->cx->arena, call->self.as.dict,
			         VALUE_STR(str_of(sym_text(ev->cx->names, arg->name))), arg->value);
			continue;
		}
		if (arg->value.kind != V_DICT)
			return ev_error(ev, DIAG_E0202, arg->span, "update needs a dict");
		for (uint32_t j = 0; j < arg->value.as.dict->n; j++)
			dict_set(ev->cx->arena, call->self.as.dict, arg->value.as.dict->p[j].key,
			         arg->value.as.dict->p[j].value);
	}
	return VALUE_NONE;
}

/* keys(), values(), items() */
static struct value d_list(struct eval *ev, struct call *call)
{
	struct value result = value_sequence(ev->cx->arena, V_LIST);
	const struct dict *dict = call->self.as.dict;
	char what = call->builtin->name[0];

	for (uint32_t i = 0; i < dict->n; i++) {
		struct value pair = value_sequence(ev->cx->arena, V_TUPLE);

		vec_push(ev->cx->arena, pair.as.sequence, dict->p[i].key);
		vec_push(ev->cx->arena, pair.as.sequence, dict->p[i].value);
		vec_push(ev->cx->arena, result.as.sequence,
		         what == 'i' ? pair : pair.as.sequence->p[what == 'v']);
	}
	return result;
}

/* Keys and values are shared, as in Python. */
static struct value d_copy(struct eval *ev, struct call *call)
{
	struct value result = { .kind = V_DICT };

	result.as.dict = arena_new(ev->cx->arena, struct dict);
	for (uint32_t i = 0; i < call->self.as.dict->n; i++)
		dict_set(ev->cx->arena, result.as.dict, call->self.as.dict->p[i].key,
		         call->self.as.dict->p[i].value);
	return result;
}

/* Types and buffers */

/* dtype.as_torch(): types of torch are the same values here. */
static struct value same_type(struct eval *ev, struct call *call)
{
	(void)ev;
	return call->self;
}

/* "shared", "fragment", ... as in the printed program. */
static struct value buffer_scope(struct eval *ev, struct call *call)
{
	(void)ev;
	return VALUE_STR(str_of(scope_text(call->self.as.buffer->scope)));
}

static const struct builtin rows[] = {
	{ "str", "startswith", "prefix", s_starts },
	{ "str", "endswith", "suffix", s_starts },
	{ "str", "upper", "", s_case },
	{ "str", "lower", "", s_case },
	{ "str", "strip", "set?", s_strip },
	{ "str", "lstrip", "set?", s_strip },
	{ "str", "rstrip", "set?", s_strip },
	{ "str", "split", "sep? maxsplit?", s_split },
	{ "str", "join", "items", s_join },
	{ "str", "replace", "old new", s_replace },
	{ "str", "find", "text", s_find },
	{ "str", "format", "**", s_format },
	{ "str", "isdigit", "", s_is },
	{ "str", "isalpha", "", s_is },
	{ "list", "append", "item", l_append },
	{ "list", "extend", "items", l_extend },
	{ "list", "pop", "at?", l_pop },
	{ "list", "insert", "at item", l_insert },
	{ "list", "index", "item", l_index },
	{ "list", "count", "item", l_index },
	{ "list", "reverse", "", l_reverse },
	{ "list", "copy", "", l_copy },
	{ "tuple", "index", "item", l_index },
	{ "tuple", "count", "item", l_index },
	{ "set", "add", "item", set_add },
	{ "set", "copy", "", l_copy },
	{ "dict", "get", "key default?", d_get },
	{ "dict", "setdefault", "key default?", d_setdefault },
	{ "dict", "pop", "key default?", d_pop },
	{ "dict", "update", "**", d_update },
	{ "dict", "keys", "", d_list },
	{ "dict", "values", "", d_list },
	{ "dict", "items", "", d_list },
	{ "dict", "copy", "", d_copy },
	{ "dtype", "as_torch", "", same_type },
	{ "buffer", "scope", "", buffer_scope },
};

const struct builtin_table host_methods = { rows, sizeof(rows) / sizeof(*rows) };
