/*
 * Sessions: a card with the compiled launches of one kernel and its tensors.
 *
 *     text -> NVRTC -> module -> kernels      once a session
 *     tensors -> device memory                once a bind
 *     launch, fetch                           as often as wanted
 */
#include "profiler/gpu_run.h"

#include "profiler/tensor_map.h"

#include "codegen/cuda/cuda.h"

#include <assert.h>
#include <string.h>

enum { MAX_TENSOR_MAPS = 32 };

static const struct span nowhere;

/* ---- building ---- */

/* All launches in one text: one compilation, one module. */
static bool print_text(struct gpu_session *session, struct cx *cx)
{
	struct buf text = { 0 };
	bool ok = cuda_print(&text, session->options.programs, session->options.n_programs);

	session->text = buf_keep(&text, cx->arena);
	return ok;
}

/*
 * For the card that is there. PTX is the way out when NVRTC is older than the card, with a warning.
 */
static bool compile(struct gpu_session *session, struct cx *cx)
{
	struct nvrtc_request request = {
		.text = session->text,
		.name = arena_printf(cx->arena, "%s.cu", cuda_kernel_name(session->options.programs[0])),
		.compute = session->gpu.compute,
		.arch_specific = session->options.arch_specific,
	};

	if (!nvrtc_open(&session->nvrtc, cx, session->options.cuda_path) ||
	    !nvrtc_compile(&session->nvrtc, &request, &session->code))
		return false;
	if (session->code.is_ptx)
		diag_report(&cx->diags, DIAG_W0701, nowhere,
		            "NVRTC %d.%d has no sm_%d: the driver translates PTX made for sm_%d",
		            session->nvrtc.major, session->nvrtc.minor, session->gpu.compute,
		            session->code.compute);
	return true;
}

/* The first launch that cannot be loaded ends it; the session's close unloads the others. */
static bool load(struct gpu_session *session, struct cx *cx)
{
	session->kernels = arena_array(cx->arena, struct gpu_kernel, session->options.n_programs);
	for (uint32_t i = 0; i < session->options.n_programs; i++) {
		const struct warp_program *program = session->options.programs[i];

		if (!gpu_load(&session->gpu, session->code.image, cuda_kernel_name(program),
		              program->shared_bytes, &session->kernels[i]))
			return false;
		session->kernels[i].n_threads = program->n_threads;
	}
	return true;
}

bool gpu_session_open(struct gpu_session *session, struct cx *cx,
                      const struct gpu_session_options *options)
{
	assert(options->n_programs > 0);
	*session = (struct gpu_session){ .options = *options };
	session->gpu.cx = cx;
	return print_text(session, cx) && gpu_open(&session->gpu, cx, options->device) &&
	       compile(session, cx) && load(session, cx);
}

/* ---- tensors ---- */

static void free_tensors(struct gpu_session *session)
{
	for (uint32_t i = 0; i < session->n_pointers; i++)
		if (session->pointers[i])
			session->gpu.api.free(session->pointers[i]);
	session->n_pointers = 0;
}

static size_t tensor_bytes(const struct tensor *tensor)
{
	return (size_t)tensor->n_elems * tensor->elem_bytes;
}

/*
 * New contents replace the old ones. n_pointers counts what close has to free, also after an error.
 */
bool gpu_session_bind(struct gpu_session *session, const struct tensor_set *tensors)
{
	struct gpu *gpu = &session->gpu;

	free_tensors(session);
	session->tensors = tensors;
	session->pointers = arena_array(gpu->cx->arena, gpu_pointer, tensors->n);
	for (uint32_t i = 0; i < tensors->n; i++) {
		const struct tensor *tensor = &tensors->items[i];

		if (!gpu_ok(gpu, gpu->api.alloc(&session->pointers[i], tensor_bytes(tensor)),
		            "allocating a tensor"))
			return false;
		session->n_pointers = i + 1;
		if (!gpu_ok(gpu,
		            gpu->api.copy_to(session->pointers[i], tensor->bytes, tensor_bytes(tensor)),
		            "copying a tensor to the card"))
			return false;
	}
	return true;
}

/* Only what the kernel writes. */
bool gpu_session_fetch(struct gpu_session *session, struct tensor_set *tensors)
{
	struct gpu *gpu = &session->gpu;

	assert(tensors->n == session->n_pointers);
	if (!gpu_synchronize(gpu))
		return false;
	for (uint32_t i = 0; i < tensors->n; i++) {
		struct tensor *tensor = &tensors->items[i];

		if (tensor->is_written &&
		    !gpu_ok(gpu,
		            gpu->api.copy_from(tensor->bytes, session->pointers[i], tensor_bytes(tensor)),
		            "copying a result from the card"))
			return false;
	}
	return true;
}

/* ---- launching ---- */

/*
 * The parameter's value as the kernel takes it: a pointer, or a scalar's bytes in the low end of a
 * word (little-endian).
 */
static bool argument(struct gpu_session *session, const struct wparam *param, uint64_t *word)
{
	const struct tensor_set *tensors = session->tensors;
	int64_t value;
	double number;

	if (param->buffer) {
		for (uint32_t i = 0; i < tensors->n; i++) {
			if (tensors->items[i].buffer != param->buffer)
				continue;
			*word = session->pointers[i];
			return true;
		}
		diag_report(&session->gpu.cx->diags, DIAG_E0705, nowhere, "tensor %s has no contents",
		            sym_text(session->gpu.cx->names, param->buffer->name));
		return false;
	}
	if (!tensors->values) {
		diag_report(&session->gpu.cx->diags, DIAG_E0705, nowhere, "%s has no value",
		            sym_text(session->gpu.cx->names, param->scalar->name));
		return false;
	}
	value = tensors->values[param->scalar->id];
	if (dtype_is_float(param->scalar->type)) {
		memcpy(&number, &value, sizeof(number));
		*word = dtype_encode(param->scalar->type, number);
	} else {
		*word = dtype_encode_int(param->scalar->type, value);
	}
	return true;
}

/* What the program's bulk copies read, behind its arguments. */
static bool tensor_map_arguments(struct gpu_session *session, const struct warp_program *program,
                                 struct gpu_tensor_map *maps, void **params)
{
	struct gpu *gpu = &session->gpu;
	struct tensor_maps wanted;

	tensor_maps_of(program, gpu->cx->arena, &wanted);
	if (wanted.items.n > MAX_TENSOR_MAPS) {
		diag_report(&gpu->cx->diags, DIAG_E0704, nowhere, "%u tensor maps; at most %d are passed",
		            wanted.items.n, MAX_TENSOR_MAPS);
		return false;
	}
	for (uint32_t i = 0; i < wanted.items.n; i++) {
		const struct tensor *tensor = tensor_of(session->tensors, wanted.items.p[i].tensor);

		assert(tensor);
		params[i] = &maps[i];
		if (!gpu_encode_map(gpu, &wanted.items.p[i], tensor,
		                    session->pointers[tensor - session->tensors->items], &maps[i]))
			return false;
	}
	return true;
}

/*
 * cuLaunchKernel takes the address of each argument, so that all words live until it returns.
 * Extents of the grid may be expressions of the sizes.
 */
static bool launch_one(struct gpu_session *session, uint32_t index)
{
	enum { MAX_PARAMS = 256 };
	const struct warp_program *program = session->options.programs[index];
	struct gpu_tensor_map maps[MAX_TENSOR_MAPS];
	uint64_t words[MAX_PARAMS];
	void *params[MAX_PARAMS + MAX_TENSOR_MAPS];
	int64_t grid[3];

	if (program->params.n > MAX_PARAMS) {
		diag_report(&session->gpu.cx->diags, DIAG_E0704, nowhere,
		            "%u parameters; at most %d are passed", program->params.n, MAX_PARAMS);
		return false;
	}
	for (uint32_t i = 0; i < program->params.n; i++) {
		params[i] = &words[i];
		if (!argument(session, &program->params.p[i], &words[i]))
			return false;
	}
	if (!tensor_map_arguments(session, program, maps, params + program->params.n))
		return false;
	for (int i = 0; i < 3; i++)
		if (!expr_is_int(program->grid[i], &grid[i]))
			grid[i] = expr_eval_int(program->grid[i], session->tensors->values);
	return gpu_launch(&session->gpu, &session->kernels[index], grid, params);
}

/* In order, on one stream: a later launch sees what an earlier one wrote. */
bool gpu_session_launch(struct gpu_session *session)
{
	assert(session->tensors);
	for (uint32_t i = 0; i < session->options.n_programs; i++)
		if (!launch_one(session, i))
			return false;
	return true;
}

/* Safe after a failed open. */
void gpu_session_close(struct gpu_session *session)
{
	free_tensors(session);
	for (uint32_t i = 0; session->kernels && i < session->options.n_programs; i++)
		gpu_unload(&session->gpu, &session->kernels[i]);
	nvrtc_close(&session->nvrtc);
	gpu_close(&session->gpu);
}

const char *gpu_driver_text(struct arena *arena, const struct gpu *gpu)
{
	return arena_printf(arena, "CUDA %d.%d", gpu->driver_version / 1000,
	                    gpu->driver_version % 1000 / 10);
}

const char *gpu_nvrtc_text(struct arena *arena, const struct nvrtc *nvrtc)
{
	return arena_printf(arena, "%d.%d", nvrtc->major, nvrtc->minor);
}

/* Once through all steps: what `run` does on a GPU. */
bool gpu_run(struct cx *cx, const struct gpu_session_options *options, struct tensor_set *tensors)
{
	struct gpu_session session;
	bool ok = gpu_session_open(&session, cx, options) && gpu_session_bind(&session, tensors) &&
	          gpu_session_launch(&session) && gpu_session_fetch(&session, tensors);

	gpu_session_close(&session);
	return ok;
}
