/*
 * Construction of tile programs, the names of enums, and the op table. The table of ops.def is
 * expanded here into one operand list an op; fields are reached by their offsets in struct op_ID,
 * so that printer, reader and verifier need no code for a new op's operands.
 */
#include "analyzer/tile/tile.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* op_is_gemm: both structs begin alike, and end alike. */
static_assert(sizeof(struct op_gemm) == sizeof(struct op_wgmma_gemm), "gemms differ");
static_assert(offsetof(struct op_gemm, policy) == offsetof(struct op_wgmma_gemm, policy),
              "gemms differ");
static_assert(offsetof(struct op_gemm, clear_accum) == offsetof(struct op_wgmma_gemm, clear_accum),
              "gemms differ");

const char *scope_text(enum scope scope)
{
	static const char *const texts[] = {
		[SCOPE_GLOBAL] = "global", [SCOPE_SHARED] = "shared", [SCOPE_FRAGMENT] = "fragment",
		[SCOPE_LOCAL] = "local",   [SCOPE_VAR] = "var",
	};

	assert(scope < N_SCOPES);
	return texts[scope];
}

const char *gemm_policy_text(enum gemm_policy policy)
{
	static const char *const texts[] = {
		[POLICY_SQUARE] = "Square",
		[POLICY_FULL_ROW] = "FullRow",
		[POLICY_FULL_COL] = "FullCol",
		[POLICY_BEST] = "best",
	};

	assert(policy <= POLICY_BEST);
	return texts[policy];
}

const char *reduce_kind_text(enum reduce_kind kind)
{
	static const char *const texts[] = {
		[REDUCE_SUM] = "sum",       [REDUCE_MAX] = "max",       [REDUCE_MIN] = "min",
		[REDUCE_ABSSUM] = "abssum", [REDUCE_ABSMAX] = "absmax", [REDUCE_BITAND] = "bitand",
		[REDUCE_BITOR] = "bitor",   [REDUCE_BITXOR] = "bitxor",
	};

	assert(kind <= REDUCE_BITXOR);
	return texts[kind];
}

const char *atomic_kind_text(enum atomic_kind kind)
{
	static const char *const texts[] = {
		[ATOMIC_NONE] = "",   [ATOMIC_ADD] = "add", [ATOMIC_MAX] = "max",
		[ATOMIC_MIN] = "min", [ATOMIC_OR] = "or",   [ATOMIC_STORE] = "store",
	};

	assert(kind <= ATOMIC_STORE);
	return texts[kind];
}

const char *loop_kind_text(enum loop_kind kind)
{
	static const char *const texts[] = {
		[LOOP_SERIAL] = "serial",         [LOOP_UNROLL] = "unroll",
		[LOOP_PIPELINED] = "pipelined",   [LOOP_PARALLEL] = "parallel",
		[LOOP_VECTORIZED] = "vectorized",
	};

	assert(kind <= LOOP_VECTORIZED);
	return texts[kind];
}

/* Symbols give -1. */
int64_t buffer_extent(const struct buffer *buffer, uint32_t dim)
{
	int64_t extent;

	assert(dim < buffer->rank);
	return expr_is_int(buffer->shape[dim], &extent) ? extent : -1;
}

/* Overflow counts as symbolic. */
int64_t buffer_n_elems(const struct buffer *buffer)
{
	int64_t n = 1;

	for (uint32_t i = 0; i < buffer->rank; i++) {
		int64_t extent = buffer_extent(buffer, i);

		if (extent < 0 || __builtin_mul_overflow(n, extent, &n))
			return -1;
	}
	return n;
}

/* Of one block; each extent is at most 1024, so that the product fits. */
int64_t launch_n_threads(const struct launch *launch)
{
	return launch->threads[0] * launch->threads[1] * launch->threads[2];
}

/* Operand lists, one array an op. */
#define OP(id, name, doc, example) static const struct operand_info operands_##id[] = {
#define REGION(id, field, role, doc) { #field, ROLE_##role, offsetof(struct op_##id, field), doc },
#define EXPR(id, field, doc) { #field, ROLE_EXPR, offsetof(struct op_##id, field), doc },
#define ATTR(id, field, doc) { #field, ROLE_ATTR, offsetof(struct op_##id, field), doc },
#define END(id) \
	} \
	;
#include "analyzer/tile/ops.def"
#undef OP
#undef REGION
#undef EXPR
#undef ATTR
#undef END

/* One row an op, made from the same table as struct op. */
const struct op_info *op_info(enum op_kind kind)
{
	static const struct op_info infos[] = {
#define OP(id, name, doc, example) \
	{ #id, name, doc, example, sizeof(operands_##id) / sizeof(*operands_##id), operands_##id },
#define REGION(id, field, role, doc)
#define EXPR(id, field, doc)
#define ATTR(id, field, doc)
#define END(id)
#include "analyzer/tile/ops.def"
#undef OP
#undef REGION
#undef EXPR
#undef ATTR
#undef END
	};

	assert(kind < N_OP_KINDS);
	return &infos[kind];
}

/*
 * What a message calls the operation; of an EVALUATE the function's own name, since "evaluate" is
 * no word of the language.
 */
const char *op_title(const struct cx *cx, const struct op *op)
{
	if (op->kind == OP_evaluate && op->as.evaluate.value &&
	    op->as.evaluate.value->kind == EXPR_CALL)
		return sym_text(cx->names, op->as.evaluate.value->as.callee);
	return op_info(op->kind)->name;
}

/* Operands that are parts of buffers, as against numbers. */
static bool is_region(enum operand_role role)
{
	return role == ROLE_READ || role == ROLE_WRITE || role == ROLE_UPDATE;
}

/* Operands lie at the offsets of the table. */
struct region *op_region(struct op *op, uint32_t index, enum operand_role *role)
{
	const struct op_info *info = op_info(op->kind);

	for (uint32_t i = 0; i < info->n_operands; i++) {
		if (!is_region(info->operands[i].role) || index-- > 0)
			continue;
		*role = info->operands[i].role;
		return (struct region *)(void *)((char *)&op->as + info->operands[i].offset);
	}
	return NULL;
}

/* Empty: no arguments, no launches. */
struct tile_program *tile_new(struct cx *cx, struct expr_pool *pool)
{
	struct tile_program *program = arena_new(cx->arena, struct tile_program);

	program->cx = cx;
	program->pool = pool;
	program->path = "";
	return program;
}

/* Ids are dense: later records are arrays indexed by them. */
struct buffer *tile_new_buffer(struct tile_program *program, enum scope scope, sym_t name,
                               struct dtype type, struct span span)
{
	struct buffer *buffer = arena_new(program->cx->arena, struct buffer);

	buffer->name = name;
	buffer->id = program->buffers.n;
	buffer->scope = scope;
	buffer->type = type;
	buffer->span = span;
	vec_push(program->cx->arena, &program->buffers, buffer);
	return buffer;
}

/* The caller puts it into a block. */
struct stmt *tile_new_stmt(struct tile_program *program, enum stmt_kind kind, struct span span)
{
	struct stmt *stmt = arena_new(program->cx->arena, struct stmt);

	stmt->kind = kind;
	stmt->id = program->n_stmts++;
	stmt->span = span;
	return stmt;
}

/* Minimum 0 and the full extent in every dimension. */
struct region region_whole(struct expr_pool *pool, const struct buffer *buffer, struct span span)
{
	struct region region = { .buffer = buffer, .span = span };

	for (uint32_t i = 0; i < buffer->rank; i++) {
		region.min[i] = expr_int(pool, 0);
		region.extent[i] = buffer_extent(buffer, i);
		assert(region.extent[i] > 0 && "only constant shapes make a whole region");
	}
	return region;
}

/* Recursion is as deep as the program's blocks, which their makers bound. */
void tile_walk(struct block *block, void (*visit)(void *user, struct stmt *stmt), void *user)
{
	for (uint32_t i = 0; i < block->stmts.n; i++) {
		struct stmt *stmt = block->stmts.p[i];

		visit(user, stmt);
		switch (stmt->kind) {
		case STMT_LOOP:
			tile_walk(&stmt->as.loop.body, visit, user);
			break;
		case STMT_IF:
			tile_walk(&stmt->as.if_.then, visit, user);
			tile_walk(&stmt->as.if_.otherwise, visit, user);
			break;
		case STMT_WHILE:
			tile_walk(&stmt->as.while_.body, visit, user);
			break;
		case STMT_OP:
		case STMT_LET:
		case STMT_STORE:
		case STMT_SYNC:
		case STMT_BREAK:
		case STMT_CONTINUE:
			break;
		}
	}
}
