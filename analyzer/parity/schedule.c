/*
 * Stages, buffer versions and places under TileLang. Facts: TileLang 0.1.15,
 * src/transform/pipeline_planning.cc and inject_pipeline.cc: a loop's copies from global to shared
 * memory run num_stages - 1 iterations ahead and their buffers have num_stages versions; a loop
 * that is split between producer and consumer warps has num_stages versions of every buffer that
 * the producers fill.
 */
#include "analyzer/parity/parity_internal.h"

static bool is_load(const struct stmt *stmt)
{
	return stmt->kind == STMT_OP && stmt->as.op.kind == OP_copy &&
	       stmt->as.op.as.copy.src.buffer->scope == SCOPE_GLOBAL &&
	       stmt->as.op.as.copy.dst.buffer->scope == SCOPE_SHARED;
}

struct scheduler {
	struct pinfer *infer;
	const struct solution *solution;
	struct schedule *schedule;
};

static void add_loop(void *user, struct stmt *stmt)
{
	struct scheduler *s = user;
	const struct loop *loop = &stmt->as.loop;
	struct pipeline pipeline = { .loop = stmt, .num_stages = 1 };

	if (stmt->kind != STMT_LOOP || loop->kind != LOOP_PIPELINED)
		return;
	if (loop->num_stages > 1)
		pipeline.num_stages = loop->num_stages;
	for (int loads = 1; loads >= 0; loads--)
		for (uint32_t i = 0; i < loop->body.stmts.n; i++) {
			const struct stmt *child = loop->body.stmts.p[i];

			if (is_load(child) == (loads == 1))
				vec_push(s->infer->arena, &pipeline.ops,
				         (struct pipeline_op){ child, loads ? 0 : pipeline.num_stages - 1,
				                               pipeline.ops.n, loads == 1 });
		}
	vec_push(s->infer->arena, &s->schedule->pipelines, pipeline);
}

static int64_t versions_of(const struct schedule *schedule, const struct buffer *buffer)
{
	for (uint32_t i = 0; i < schedule->pipelines.n; i++) {
		const struct pipeline *pipeline = &schedule->pipelines.p[i];

		for (uint32_t j = 0; j < pipeline->ops.n; j++) {
			const struct stmt *stmt = pipeline->ops.p[j].stmt;

			if (is_load(stmt) && stmt->as.op.as.copy.dst.buffer == buffer)
				return pipeline->num_stages;
		}
	}
	return 1;
}

struct schedule *parity_schedule(struct pinfer *infer, const struct solution *solution)
{
	enum { ALIGN = 1024 };
	struct scheduler s = { infer, solution, arena_new(infer->arena, struct schedule) };

	s.schedule->solution = solution;
	tile_walk((struct block *)(uintptr_t)&infer->launch->body, add_loop, &s);
	for (uint32_t i = 0; i < infer->program->buffers.n; i++) {
		const struct buffer *buffer = infer->program->buffers.p[i];
		const struct layout *layout = solution->buffers[i].layout;
		struct shared_place place = { .buffer = buffer, .align_bytes = ALIGN };

		if (buffer->scope != SCOPE_SHARED || buffer->launch != infer->launch->index || !layout)
			continue;
		place.n_versions = versions_of(s.schedule, buffer);
		place.version_bytes = (layout->n_bytes + 127) / 128 * 128;
		place.offset_bytes = (s.schedule->shared_bytes + ALIGN - 1) / ALIGN * ALIGN;
		s.schedule->shared_bytes = place.offset_bytes + place.n_versions * place.version_bytes;
		vec_push(infer->arena, &s.schedule->places, place);
	}
	return s.schedule;
}
