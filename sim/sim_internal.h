/*
 * sim_internal: the simulator's state, shared by its files.
 *   sim.c           blocks, control flow, masks
 *   sim_memory.c    ld, st, ldmatrix, stmatrix, cp.async
 *   sim_shadow.c    who touched which byte when: races, values that nothing wrote
 *   sim_compute.c   set, mma, shuffles
 *   sim_wgmma.c     warpgroup instructions, their groups and fences
 *   sim_phases.c    groups of threads that wait for each other: barriers, bulk copies
 *   sim_finding.c   what is reported
 */
#ifndef TL_SIM_SIM_INTERNAL_H
#define TL_SIM_SIM_INTERNAL_H

#include "analyzer/banks/banks.h"
#include "base/strands.h"
#include "codegen/lower/phases.h"
#include "sim/lanes.h"
#include "sim/sim.h"

#include <assert.h>

enum { WARP_LANES = 32, MAX_WARPS = 32, MAX_LOOP_DEPTH = 64 };
enum { MAX_WARPGROUPS = MAX_WARPS / WGMMA_WARPS };

/* Threads that take part, a word a warp, lane 0 the lowest bit. */
struct lane_mask {
	uint32_t warps[MAX_WARPS];
};

enum { NO_THREAD = WARP_LANES * MAX_WARPS };

/* The first thread of the mask from `from` on; NO_THREAD behind the last one. */
static inline uint32_t mask_next(const struct lane_mask *mask, uint32_t from)
{
	for (; from < NO_THREAD; from = (from / WARP_LANES + 1) * WARP_LANES) {
		uint32_t lanes = mask->warps[from / WARP_LANES] >> from % WARP_LANES;
		if (lanes)
			return from + (uint32_t)__builtin_ctz(lanes);
	}
	return NO_THREAD;
}

/* What warpgroup instructions have to do with a register. */
enum reg_async {
	REG_PRODUCT = 1,  /* an accumulator of one that is not awaited */
	REG_OPERAND = 2,  /* A of one that is not awaited */
	REG_UNFENCED = 4, /* written since the last wgmma.fence */
};

/* A register array of all threads: slot s of thread t is element s * n_threads + t. */
struct reg_file {
	uint8_t *bytes;
	uint8_t *written;
	uint8_t *async; /* bits of enum reg_async; NULL in programs without wgmma */
	uint32_t elem_bytes;
	int64_t n_slots;
};

/*
 * What happened to a byte of shared memory in this block. Intervals lie between barriers and count
 * from 1; 0: never.
 */
struct shadow_byte {
	uint32_t write_interval, read_interval;
	uint32_t write_node, read_node, copy_node;
	uint16_t writer, reader; /* threads */
	uint16_t copier;         /* thread + 1 whose cp.async into it is in flight; 0: none */
	uint16_t other_reader;   /* thread + 1 of another one, not ordered with it; 0: none */
	uint32_t other_interval; /* in which that one read */
	bool is_written;
	uint8_t product_groups; /* warpgroups whose wgmma of group product - 1 read it, a bit each */
	uint32_t product;       /* the last such group + 1; 0: none */
	uint32_t product_node;
	uint32_t fences;       /* proxy fences that its writer had done before the write */
	bool is_atomic;        /* the write was */
	uint16_t other_writer; /* thread + 1 of another atomic, not ordered with the last; 0: none */
};

/* Registers that a wgmma in flight uses: slots of all threads of its warpgroup. */
struct busy_regs {
	const struct reg_file *file;
	int64_t slot, n;
	uint32_t group;
	uint8_t bit; /* enum reg_async */
};

/* A warpgroup's groups of wgmma. */
struct products {
	uint32_t n_committed, n_done;
	vec_of(uint32_t) done_interval; /* by group */
	vec_of(struct busy_regs) busy;  /* registers of groups that are not done */
};

/* The last barrier of a part of the block that a thread came to, and whom it met there. */
struct meeting {
	uint32_t interval; /* that it began; 0: none */
	uint32_t first, n; /* the threads */
};

/* The last write to an element of a global tensor. */
struct shadow_elem {
	uint32_t writer; /* thread + 1; 0: not written */
	uint32_t block;
	uint32_t interval;
	uint32_t node;
	bool is_atomic;
	bool was_stored; /* by the same block, not as an atomic */
};

/* Threads that have come to a hardware barrier, by its number (0: of the whole block). */
enum { HARDWARE_BARRIERS = 16 };
struct sim_meet {
	struct lane_mask here;
	uint32_t round; /* how often it has let them go */
};

/* A cp.async in flight. */
struct pending_copy {
	uint32_t thread;
	uint32_t group;
	uint32_t node;
	uint32_t bytes;
	int64_t to; /* absolute shared byte */
	uint8_t data[16];
};

struct mma_map {
	bool ready;
	uint16_t a[WARP_LANES][32], b[WARP_LANES][32],
		d[WARP_LANES][32]; /* row-major element numbers */
};

struct sim {
	const struct warp_program *program;
	struct cx *cx;
	struct tensor_set *tensors;
	struct sim_result *result;
	struct arena *arena; /* of this run */
	struct lane_eval *eval;
	uint64_t max_steps;
	uint32_t n_threads, n_warps;
	struct lane_mask all;

	struct reg_file *regs; /* by register array id */
	uint8_t *shared;
	int64_t shared_bytes;
	struct shadow_byte *shadow;
	struct shadow_elem **globals; /* by tensor number; NULL until needed */
	vec_of(struct pending_copy) pending;
	uint32_t *open_group; /* by thread: number of the group that takes its copies */
	struct mma_map mma_maps[N_MMA_SHAPES];
	struct products products[MAX_WARPGROUPS];
	struct product *product; /* scratch of sim_wgmma.c; NULL until needed */
	uint32_t *fences;        /* by thread: proxy fences done in this block */
	float *half_values;      /* float16 by its bits; NULL until needed */

	/* Groups of threads that may wait for each other; one without mbarriers. */
	struct phases *phases; /* NULL: the program has no mbarrier */
	struct strands *strands;
	struct lane_mask *groups;
	uint32_t n_groups, group; /* the one that runs */
	struct sim_place *places; /* by group */
	struct sim_meet meets[HARDWARE_BARRIERS];

	/* where it is */
	int64_t block[3];
	uint32_t block_number;
	uint32_t interval;        /* counts barriers of any kind */
	uint32_t block_interval;  /* that the last barrier of the whole block began */
	struct meeting *meetings; /* by thread */
	const struct wnode *node;
	const struct wnode **nodes; /* by id */
	const struct wnode *loops[MAX_LOOP_DEPTH];
	int64_t loop_values[MAX_LOOP_DEPTH];
	uint32_t n_loops;
	struct map seen; /* findings by (kind, instruction, other instruction) -> index + 1 */
	bool stop;
	bool gave_up; /* this block: a deadlock */
};

/* Whose fault a finding is: a thread, and in races the instruction that it meets. */
struct sim_who {
	uint32_t thread;
	bool has_other;
	uint32_t other_node;
};
static inline struct sim_who who_thread(uint32_t thread)
{
	return (struct sim_who){ thread, false, 0 };
}
static inline struct sim_who who_meets(uint32_t thread, uint32_t other_node)
{
	return (struct sim_who){ thread, true, other_node };
}

/* ---- sim_finding.c ---- */

/* Notes a finding at the instruction that runs now. */
void sim_find(struct sim *sim, enum sim_finding_kind kind, struct sim_who who, const char *format,
              ...) __attribute__((format(printf, 4, 5)));
/*
 * A finding for the first thread of the mask that is poisoned in one of the `kinds`; `what` names
 * the value.
 */
void sim_find_poison(struct sim *sim, const struct lanes *lanes, const struct lane_mask *mask,
                     uint8_t kinds, const char *what);
/* Kernel line of a node, for texts. */
uint32_t sim_line(const struct sim *sim, uint32_t node);

/* ---- sim.c ---- */

/*
 * A register operand, its slot evaluated for all threads. sim_slot_at: the first slot for a thread,
 * or -1 after a finding.
 */
struct slots {
	const struct reg_file *file;
	const struct wregs *regs;
	struct lanes lanes;
};
struct slots sim_slots(struct sim *sim, const struct wregs *regs, const struct lane_mask *mask);
int64_t sim_slot_at(struct sim *sim, const struct slots *slots, uint32_t thread);
/* Where a slot of a thread is kept; a warp's lanes lie side by side. */
static inline uint8_t *sim_reg(const struct sim *sim, const struct reg_file *file, int64_t slot,
                               uint32_t thread)
{
	assert(slot >= 0 && slot < file->n_slots);
	return file->bytes + (slot * sim->n_threads + thread) * file->elem_bytes;
}
/* A finding when one of the operand's slots was never written; they count as written then. */
void sim_need_written(struct sim *sim, const struct slots *slots, int64_t slot, uint32_t thread);
/* Notes n slots as written. */
void sim_set_written(const struct sim *sim, const struct reg_file *file, int64_t slot, int64_t n,
                     uint32_t thread);
/* A finding when the slots belong to a wgmma in flight: `bits` of enum reg_async that matter. */
void sim_need_idle(struct sim *sim, const struct slots *slots, int64_t slot, uint32_t thread,
                   uint8_t bits);
/* True when all lanes of the warp take part, false without any or with a finding. */
bool sim_whole_warp(struct sim *sim, const struct lane_mask *mask, uint32_t warp);

/* ---- sim_shadow.c ---- */

/* Bytes [at, at + n) of shared memory, absolute, which lie in the piece `shared`. */
void shadow_read(struct sim *sim, const struct wshared *shared, int64_t at, uint32_t n,
                 uint32_t thread);
void shadow_write(struct sim *sim, const struct wshared *shared, int64_t at, uint32_t n,
                  uint32_t thread);
/* An atomic operation: a write that meets only those of ordinary stores, and all reads. */
void shadow_atomic(struct sim *sim, const struct wshared *shared, int64_t at, uint32_t n,
                   uint32_t thread);
void shadow_copy_begin(struct sim *sim, const struct wshared *shared, int64_t at, uint32_t n,
                       uint32_t thread);
void shadow_copy_land(struct sim *sim, const struct pending_copy *copy);
/* 16 bytes that a warpgroup instruction reads, until its group is awaited. */
void shadow_read_product(struct sim *sim, const struct wshared *shared, int64_t at,
                         uint32_t warpgroup);
/* Bytes that a bulk copy brings. */
struct bulk_writer {
	uint32_t thread; /* that issued it */
	uint32_t writer; /* by which it counts (phases_copied) */
};
void shadow_bulk(struct sim *sim, const struct wshared *shared, int64_t at, uint32_t n,
                 struct bulk_writer by);
/* Elements [at, at + n) of a tensor. */
struct elem_range {
	const struct tensor *tensor;
	int64_t at, n;
};
/* A write is noted before the bytes change and gets the new ones. */
void shadow_global_read(struct sim *sim, struct elem_range range, uint32_t thread);
void shadow_global_write(struct sim *sim, struct elem_range range, uint32_t thread,
                         const uint8_t *bytes);
void shadow_global_atomic(struct sim *sim, struct elem_range range, uint32_t thread);

/* Is what thread `other` did in `interval` ordered before what `thread` does now? */
bool sim_is_ordered(const struct sim *sim, uint32_t other, uint32_t interval, uint32_t thread);

/* ---- sim_phases.c ---- */

/* Fills phases and groups; once, when the program is known. */
void sim_open_groups(struct sim *sim);
void sim_begin_groups(struct sim *sim); /* a new block */
/* The threads come to hardware barrier `id`, which waits for n_threads of different groups. */
void sim_meet(struct sim *sim, uint32_t id, uint32_t n_threads, const struct lane_mask *taken);
void sim_mbar(struct sim *sim, const struct winst *inst, const struct lane_mask *taken);
void sim_mbar_wait(struct sim *sim, const struct wop_mbar_wait *op, const struct lane_mask *taken);
void sim_tma_load(struct sim *sim, const struct wop_tma_load *op, const struct lane_mask *taken);
/* The strand's work, and what is to be done when it goes on. In sim.c and sim_phases.c. */
void sim_run_group(void *user, uint32_t group);
void sim_resume(void *user, uint32_t group);

/* ---- instructions ---- */

/* Each instruction: the threads of `mask` get there, those of `taken` satisfy the predicate too. */
void sim_ld(struct sim *sim, const struct wop_ld *op, const struct lane_mask *mask,
            const struct lane_mask *taken);
void sim_st(struct sim *sim, const struct wop_st *op, const struct lane_mask *taken);
void sim_red(struct sim *sim, const struct wop_red *op, const struct lane_mask *taken);
void sim_ldmatrix(struct sim *sim, const struct wop_ldmatrix *op, const struct lane_mask *taken);
void sim_stmatrix(struct sim *sim, const struct wop_stmatrix *op, const struct lane_mask *taken);
void sim_cp_async(struct sim *sim, const struct wop_cp_async *op, const struct lane_mask *mask,
                  const struct lane_mask *taken);
void sim_cp_async_commit(struct sim *sim, const struct lane_mask *taken);
void sim_cp_async_wait(struct sim *sim, const struct wop_cp_async_wait *op,
                       const struct lane_mask *taken);
/* All copies of these threads land. */
void sim_land_copies(struct sim *sim, const struct lane_mask *taken);
void sim_mma(struct sim *sim, const struct wop_mma *op, const struct lane_mask *taken);
void sim_set(struct sim *sim, const struct wop_set *op, const struct lane_mask *taken);
void sim_shuffle(struct sim *sim, const struct winst *inst, const struct lane_mask *taken);

void sim_wgmma(struct sim *sim, const struct winst *inst, const struct lane_mask *taken);
void sim_wgmma_fence(struct sim *sim, const struct wop_wgmma_fence *op,
                     const struct lane_mask *taken);
void sim_wgmma_commit(struct sim *sim, const struct lane_mask *taken);
void sim_wgmma_wait(struct sim *sim, const struct wop_wgmma_wait *op,
                    const struct lane_mask *taken);
void sim_fence_async(struct sim *sim, const struct lane_mask *taken);
/* Elements in memory or registers as floats; tf32 keeps 10 bits of mantissa. */
void sim_operand_values(struct sim *sim, struct dtype type, const uint8_t *at, uint32_t n,
                        float *values);
/* D += sum, of `n` lanes side by side. */
void sim_accumulate(struct dtype type, uint8_t *at, uint32_t n, const float *sums);

/* The loader of register elements in expressions. */
struct lane_loader sim_loader(struct sim *sim);

#endif
