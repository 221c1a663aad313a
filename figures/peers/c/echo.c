// The least work that answers a connection with what it sends: epoll, one recv and one send for
// each message, no threads, nothing kept for a connection. A bound, not a server: what cannot be
// sent at once is lost.
//
// usage: echo limit
// Prints its port, and serves until it is killed.
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static void need(int yes, const char *what) {
    if (!yes) {
        perror(what);
        exit(1);
    }
}

int main(void) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), epoll = epoll_create1(0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    need(!bind(listener, (struct sockaddr *)&address, sizeof address), "bind");
    need(!listen(listener, 4096), "listen");
    need(!getsockname(listener, (struct sockaddr *)&address, &length), "getsockname");
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
    need(!epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event), "epoll_ctl");
    printf("port %d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        const int ready = epoll_wait(epoll, events, 256, -1);
        need(ready >= 0 || errno == EINTR, "epoll_wait");
        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd == listener) {
                int fd;
                while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                    event = (struct epoll_event){.events = EPOLLIN | EPOLLET, .data.fd = fd};
                    need(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
                }
                continue;
            }
            char buffer[1024];
            const ssize_t n = recv(events[i].data.fd, buffer, sizeof buffer, 0);
            if (n > 0) need(send(events[i].data.fd, buffer, n, MSG_NOSIGNAL) == n, "send");
        }
    }
}
