// Network namespaces: sockets made inside one without leaving the thread there.
#ifndef NETMAP_BRIDGE_NETNS_H
#define NETMAP_BRIDGE_NETNS_H

// Puts this thread into the namespace that `ip netns` calls `netns`; "" stays where it is. Every call that returned 0
// must be followed by netns_leave(saved) on the same thread, with nothing in between that could throw or return.
// Returns 0 or a positive errno: ENOENT no such namespace, EPERM without CAP_SYS_ADMIN, EINVAL not a plain name,
// EOPNOTSUPP where the system has no such namespaces (FreeBSD).
int netns_enter(const char *netns, int *saved);

// Back to where netns_enter() came from. Aborts the process when that fails: a thread left in a foreign namespace
// would open every later socket on the wrong network.
void netns_leave(int saved);

// socket() inside the namespace, close-on-exec; the socket stays in it. -1 with errno set.
int netns_socket(const char *netns, int domain, int type, int protocol);

#endif
