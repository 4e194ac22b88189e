/*
 * A child process with a time limit, its output read through a pipe. Measuring runs in a child
 * because a kernel that faults, or a profiler library that fails, takes its process's CUDA context
 * with it.
 */
#include "profiler/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_OUTPUT_BYTES = 64 << 20 };

/* A clock that is never set back. */
static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * A file without a name that holds the text, at its start; -1 with errno. A file, not a pipe: a
 * child that reads late cannot block its parent. Descriptors 0 to 2 are left to the child's own.
 */
static int open_input(struct str input)
{
	FILE *file = tmpfile();
	int copy;

	if (!file)
		return -1;
	fwrite(input.p ? input.p : "", 1, input.n, file);
	if (fflush(file) != 0) {
		fclose(file);
		return -1;
	}
	copy = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
	fclose(file);
	if (copy >= 0)
		lseek(copy, 0, SEEK_SET);
	return copy;
}

/*
 * Never returns: exec, or errno into the pipe. A process group of its own, so that the time limit
 * reaches whatever the child started; stderr is dropped, as diagnostics travel in the output.
 */
_Noreturn static void start(const char *path, char *const arguments[], const int fds[3],
                            int error_fd)
{
	int dropped = open("/dev/null", O_WRONLY);
	ssize_t written;
	int error;

	setpgid(0, 0);
	dup2(fds[0], STDIN_FILENO);
	dup2(fds[1], STDOUT_FILENO);
	dup2(dropped, STDERR_FILENO);
	execv(path, arguments);
	error = errno;
	written = write(error_fd, &error, sizeof(error));
	_exit(written == (ssize_t)sizeof(error) ? 126 : 127);
}

/* Reads until the end, the time limit or too much output; the child is killed for the last two. */
static void read_output(struct child_result *result, int fd, pid_t pid, int limit_ms)
{
	int64_t end = now_ms() + limit_ms;
	char chunk[1 << 16];

	for (;;) {
		struct pollfd poller = { .fd = fd, .events = POLLIN };
		int64_t left = end - now_ms();
		int ready = poll(&poller, 1, left > 0 ? (int)left : 0);
		ssize_t n;

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0 || result->out.n > MAX_OUTPUT_BYTES) {
			result->timed_out = ready <= 0;
			kill(-pid, SIGKILL);
			return;
		}
		n = read(fd, chunk, sizeof(chunk));
		if (n <= 0)
			return;
		buf_add(&result->out, chunk, (size_t)n);
	}
}

/*
 * Waits for the child; one that closed its output but runs on is killed when the time is over.
 * Never leaves a zombie behind.
 */
static void reap(struct child_result *result, pid_t pid, int limit_ms)
{
	int64_t end = now_ms() + limit_ms;
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		const struct timespec pause = { 0, 2000000 };

		if (now_ms() > end) {
			result->timed_out = true;
			kill(-pid, SIGKILL);
		}
		nanosleep(&pause, NULL);
	}
	result->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	result->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* The error pipe closes at exec: reading nothing from it means that the program has started. */
struct child_result child_run(const char *path, char *const arguments[], struct str input,
                              int limit_ms)
{
	struct child_result result = { .exit_code = -1 };
	int output[2] = { -1, -1 }, error[2] = { -1, -1 }, in = open_input(input);
	pid_t pid = -1;

	assert(path && arguments[0] && limit_ms > 0);
	if (in >= 0 && pipe2(output, O_CLOEXEC) == 0 && pipe2(error, O_CLOEXEC) == 0) {
		const int fds[3] = { in, output[1], -1 };

		fflush(NULL);
		pid = fork();
		if (pid == 0)
			start(path, arguments, fds, error[1]);
	}
	if (pid < 0)
		result.start_errno = errno ? errno : EIO;
	close(in);
	close(output[1]);
	close(error[1]);
	if (pid > 0) {
		if (read(error[0], &result.start_errno, sizeof(result.start_errno)) < 0)
			result.start_errno = errno;
		read_output(&result, output[0], pid, limit_ms);
		reap(&result, pid, limit_ms);
	}
	close(output[0]);
	close(error[0]);
	return result;
}

/* NULL when all went well; else words that follow the program's name. */
const char *child_outcome(struct arena *arena, const struct child_result *result)
{
	if (result->start_errno)
		return arena_printf(arena, "could not be started: %s", strerror(result->start_errno));
	if (result->timed_out)
		return "did not end within its time limit and was killed";
	if (result->signal)
		return arena_printf(arena, "was killed by signal %d (%s)", result->signal,
		                    strsignal(result->signal));
	if (result->exit_code != 0)
		return arena_printf(arena, "ended with exit code %d", result->exit_code);
	return NULL;
}
