/*
 * The form of `emit --stage=schedule`:
 *
 *     schedule matmul_relu launch 0
 *     pipeline @27 stages 3
 *         stage 0 order 0 async copy @28
 *     shared A_shared at 0 versions 3 x 16384 bytes align 1024
 */
#include "analyzer/pipeline/pipeline.h"

static const char *stmt_word(const struct stmt *stmt)
{
	switch (stmt->kind) {
	case STMT_OP:
		return op_info(stmt->as.op.kind)->id;
	case STMT_LOOP:
		return loop_kind_text(stmt->as.loop.kind);
	case STMT_IF:
		return "if";
	case STMT_WHILE:
		return "while";
	case STMT_LET:
		return "let";
	case STMT_STORE:
		return "store";
	case STMT_SYNC:
		return "sync";
	case STMT_BREAK:
		return "break";
	case STMT_CONTINUE:
		return "continue";
	}
	return "?";
}

static void print_pipeline(struct buf *out, const struct cx *cx, const struct pipeline *pipeline)
{
	buf_line(out, "pipeline @%u stages %lld%s%s", source_line(&cx->sources, pipeline->loop->span),
	         (long long)pipeline->num_stages, pipeline->reason ? " because " : "",
	         pipeline->reason ? pipeline->reason : "");
	out->indent++;
	for (uint32_t i = 0; i < pipeline->ops.n; i++) {
		const struct pipeline_op *op = &pipeline->ops.p[i];
		buf_line(out, "stage %lld order %lld %s%s @%u", (long long)op->stage, (long long)op->order,
		         op->async ? "async " : "", stmt_word(op->stmt),
		         source_line(&cx->sources, op->stmt->span));
	}
	out->indent--;
}

void schedule_print(struct buf *out, const struct schedule *schedule)
{
	const struct tile_program *program = schedule->solution->program;
	const struct cx *cx = program->cx;

	buf_line(out, "schedule %s launch %u", sym_text(cx->names, program->name),
	         schedule->solution->launch->index);
	for (uint32_t i = 0; i < schedule->pipelines.n; i++)
		print_pipeline(out, cx, &schedule->pipelines.p[i]);
	for (uint32_t i = 0; i < schedule->places.n; i++) {
		const struct shared_place *place = &schedule->places.p[i];
		const char *name = place->buffer ? sym_text(cx->names, place->buffer->name) : "workspace";
		buf_line(out, "shared %s at %lld versions %lld x %lld bytes align %lld", name,
		         (long long)place->offset_bytes, (long long)place->n_versions,
		         (long long)place->version_bytes, (long long)place->align_bytes);
	}
	buf_line(out, "shared bytes %lld", (long long)schedule->shared_bytes);
}
