#include "netns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#ifdef __linux__
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

int netns_enter(const char *netns, int *saved) {
  *saved = -1;
  if (netns[0] == '\0') return 0;
  // ip(8) keeps one file a namespace here; a name is a file name, not a path.
  char path[300];
  if (strchr(netns, '/') != NULL || strcmp(netns, ".") == 0 || strcmp(netns, "..") == 0) return EINVAL;
  if ((size_t)snprintf(path, sizeof path, "/run/netns/%s", netns) >= sizeof path) return ENAMETOOLONG;
  int original = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (original < 0) return errno;
  int error = 0;
  int target = open(path, O_RDONLY | O_CLOEXEC);
  if (target < 0 || setns(target, CLONE_NEWNET) != 0) error = errno;
  if (target >= 0) close(target);
  if (error != 0) {
    close(original);
    return error;
  }
  *saved = original;
  return 0;
}

void netns_leave(int saved) {
  if (saved < 0) return;
  if (setns(saved, CLONE_NEWNET) != 0) {
    fprintf(stderr, "netmap-bridge: cannot return to the original network namespace: %s\n", strerror(errno));
    abort();
  }
  close(saved);
}

#else

int netns_enter(const char *netns, int *saved) {
  *saved = -1;
  return netns[0] == '\0' ? 0 : EOPNOTSUPP;
}

void netns_leave(int saved) {
  (void)saved;
}

#endif

int netns_socket(const char *netns, int domain, int type, int protocol) {
  int saved;
  int error = netns_enter(netns, &saved);
  if (error != 0) {
    errno = error;
    return -1;
  }
  int fd = socket(domain, type | SOCK_CLOEXEC, protocol);
  error = errno;
  netns_leave(saved);
  errno = error;
  return fd;
}
