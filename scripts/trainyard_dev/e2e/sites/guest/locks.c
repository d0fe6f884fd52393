/*
 * Locks between two NFS clients: one file, opened through a mount of each. What the first client holds must be refused to
 * the second and granted after it was let go.
 *
 * usage: locks flock|range FIRST SECOND
 * Prints "refused, then granted", or what came instead.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static int whole(int file, int take) { return flock(file, take ? LOCK_EX | LOCK_NB : LOCK_UN); }

static int range(int file, int take) {
	struct flock lock = {.l_type = take ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET, .l_start = 100, .l_len = 50};
	return fcntl(file, F_SETLK, &lock);
}

static int fail(const char *what) {
	printf("%s: %s\n", what, strerror(errno));
	return 1;
}

int main(int count, char **words) {
	if (count != 4)
		return 2;
	int (*lock)(int, int) = strcmp(words[1], "flock") ? range : whole;
	int first = open(words[2], O_RDWR | O_CREAT, 0660);
	if (first < 0)
		return fail(words[2]);
	int second = open(words[3], O_RDWR);
	if (second < 0)
		return fail(words[3]);
	if (lock(first, 1))
		return fail("the first client gets no lock");
	if (!lock(second, 1)) {
		puts("both clients hold the lock");
		return 1;
	}
	if (errno != EWOULDBLOCK && errno != EACCES)
		return fail("the second client is not refused but fails");
	if (lock(first, 0))
		return fail("the first client can't let go");
	if (lock(second, 1))
		return fail("the second client gets no lock after the first let go");
	puts("refused, then granted");
	return 0;
}
