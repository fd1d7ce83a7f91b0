# needs: gcc
# prints: received: hello
cat >q.c <<'END'
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
int main(void) {
	struct mq_attr room = {.mq_maxmsg = 2, .mq_msgsize = 64};
	char b[64];
	mqd_t q = mq_open("/jobs", O_CREAT | O_RDWR, 0600, &room);
	if (q == (mqd_t)-1 || mq_send(q, "hello", 6, 0) || mq_receive(q, b, sizeof b, 0) < 0 || mq_unlink("/jobs")) {
		perror("queue");
		return 1;
	}
	printf("received: %s\n", b);
	return 0;
}
END
gcc -o q q.c -lrt && ./q
