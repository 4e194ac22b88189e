/*
 * T.any_of, T.all_of: does any element of a buffer or a part of one differ from 0, do all?
 *
 *     if T.any_of(mask[by, 0:2]):         ->    if mask[by, 0] | mask[by, 1]:
 *     y[i] = T.all_of(x[i, :])            ->    all_of = True
 *                                               for e in 64: all_of = all_of & (x[i, e] != 0)
 *                                               y[i] = all_of
 *
 * Elements are named, not addresses: the answer is right under any layout of the buffer. TileLang
 * 0.1.15 scans consecutive addresses instead (src/op/logical.cc), which a swizzle permutes.
 */
#include "analyzer/frontend/eval.h"

#include <string.h>

enum {
	MAX_INLINE = 8, /* elements that become one expression where a loop is possible ... */
	MAX_LAZY = 256, /* ... and where none is: behind a condition that decides whether to read */
};

/* The question and where its elements are. */
struct asked {
	struct region_value region;
	int64_t n;
	bool is_all;
	struct span span;
};

static bool read_region(struct eval *ev, const struct call *call, struct asked *out)
{
	struct value value = call->slot[0]->value;

	if (value.kind == V_REGION) {
		out->region = *value.as.region;
	} else if (value.kind == V_BUFFER) {
		out->region.buffer = value.as.buffer;
		trace_use(ev, value.as.buffer);
		for (uint32_t d = 0; d < value.as.buffer->rank; d++) {
			out->region.min[d] = expr_int(ev->pool, 0);
			out->region.extent[d] = buffer_extent(value.as.buffer, d);
		}
	} else {
		ev_error(ev, DIAG_E0202, call->slot[0]->span, "%s takes a buffer or a part of one, not %s",
		         call->name, value_type_text(value));
		return false;
	}
	out->n = 1;
	for (uint32_t d = 0; d < out->region.buffer->rank; d++)
		if (out->region.extent[d] < 1 ||
		    __builtin_mul_overflow(out->n, out->region.extent[d], &out->n)) {
			ev_error(ev, DIAG_E0308, call->slot[0]->span, "%s takes a part of constant extents",
			         call->name);
			return false;
		}
	return true;
}

/* Does element number `at` of the region, in row-major order, differ from 0? */
static const struct expr *element(struct eval *ev, const struct asked *asked, const struct expr *at)
{
	const struct buffer *buffer = asked->region.buffer;
	const struct expr *index[MAX_RANK], *load;

	for (uint32_t d = buffer->rank; d-- > 0;) {
		int64_t extent = asked->region.extent[d];

		index[d] = expr_add(ev->pool, asked->region.min[d], expr_mod_int(ev->pool, at, extent));
		at = expr_div_int(ev->pool, at, extent);
	}
	load = expr_load(ev->pool, buffer, buffer->type, index, buffer->rank);
	if (buffer->type.kind == TYPE_BOOL)
		return load;
	return expr_binary(ev->pool, BIN_NE, load, expr_int_typed(ev->pool, buffer->type, 0));
}

static const struct expr *join(struct eval *ev, const struct asked *asked, const struct expr *a,
                               const struct expr *b)
{
	return expr_binary(ev->pool, asked->is_all ? BIN_BITAND : BIN_BITOR, a, b);
}

/* Elements [first, first + n) as a balanced tree: n is bounded, so is its height. */
static const struct expr *tree(struct eval *ev, const struct asked *asked, int64_t first, int64_t n)
{
	if (n == 1)
		return element(ev, asked, expr_int(ev->pool, first));
	return join(ev, asked, tree(ev, asked, first, n / 2),
	            tree(ev, asked, first + n / 2, n - n / 2));
}

static bool store(struct eval *ev, const struct asked *asked, struct buffer *result,
                  const struct expr *value)
{
	return trace_store(ev, result, VALUE_NONE, VALUE_EXPR(value), asked->span);
}

/* A scalar of the thread's, joined with one element after another. */
static struct value loop_over(struct eval *ev, const struct call *call, const struct asked *asked)
{
	struct tensor_type type = { .type = DTYPE_BOOL };
	struct value result = lang_new_buffer(ev, call, SCOPE_VAR, &type);
	struct block *outer = ev->trace->block;
	const struct expr *so_far;
	struct stmt *stmt;
	struct var *var;
	bool ok;

	if (result.kind == V_ERROR)
		return result;
	result.as.buffer->name = trace_name(ev, intern_text(ev->cx->names, call->builtin->name));
	result.as.buffer->span = asked->span;
	if (!store(ev, asked, result.as.buffer, expr_bool(ev->pool, asked->is_all)))
		return VALUE_ERROR;
	stmt = trace_stmt(ev, STMT_LOOP, asked->span);
	if (!stmt)
		return VALUE_ERROR;
	var = expr_new_var(ev->pool, VAR_LOOP, trace_name(ev, intern_text(ev->cx->names, "e")),
	                   DTYPE_I32);
	var->max = asked->n - 1;
	var->span = asked->span;
	stmt->as.loop.kind = LOOP_SERIAL;
	stmt->as.loop.n_vars = 1;
	stmt->as.loop.vars[0] = var;
	stmt->as.loop.extents[0] = expr_int(ev->pool, asked->n);
	so_far = expr_load(ev->pool, result.as.buffer, DTYPE_BOOL, NULL, 0);
	ev->trace->block = &stmt->as.loop.body;
	ok = store(ev, asked, result.as.buffer,
	           join(ev, asked, so_far, element(ev, asked, expr_of_var(ev->pool, var))));
	ev->trace->block = outer;
	return ok ? VALUE_EXPR(so_far) : VALUE_ERROR;
}

static void note_scan(struct eval *ev, const struct call *call, const struct asked *asked)
{
	struct element_scan scan = { .name = call->name };

	scan.region.buffer = asked->region.buffer;
	memcpy(scan.region.min, asked->region.min, sizeof(scan.region.min));
	memcpy(scan.region.extent, asked->region.extent, sizeof(scan.region.extent));
	scan.region.span = asked->span;
	vec_push(ev->cx->arena, &ev->trace->program->scans, scan);
}

static struct value quantified(struct eval *ev, struct call *call, bool is_all)
{
	struct asked asked = { .is_all = is_all, .span = call->span };

	if (!trace_require(ev, call->span, call->name) || !read_region(ev, call, &asked))
		return VALUE_ERROR;
	note_scan(ev, call, &asked);
	if (asked.n <= MAX_INLINE || (ev->n_lazy && asked.n <= MAX_LAZY))
		return VALUE_EXPR(tree(ev, &asked, 0, asked.n));
	if (ev->n_lazy)
		return ev_error(
			ev, DIAG_E0204, call->span,
			"%s of %lld elements stands behind a condition that decides whether they are "
			"read: give it a name in front of this statement",
			call->name, (long long)asked.n);
	return loop_over(ev, call, &asked);
}

static struct value t_any_of(struct eval *ev, struct call *call)
{
	return quantified(ev, call, false);
}

static struct value t_all_of(struct eval *ev, struct call *call)
{
	return quantified(ev, call, true);
}

static const struct builtin rows[] = {
	{ "tilelang.language", "any_of", "buffer", t_any_of },
	{ "tilelang.language", "all_of", "buffer", t_all_of },
};

const struct builtin_table lang_logical = { rows, sizeof(rows) / sizeof(*rows) };
