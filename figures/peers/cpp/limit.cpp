// Not a web server: the least work that answers a request. One thread, edge-triggered epoll, one
// recv and one send per request, a constant reply; no parsing, no file, no log. What it reaches is
// the machine's limit for that exchange.
//
// usage: limit PORT BODY_BYTES
#include <arpa/inet.h>
#include <cstdio>
#include <cstdlib>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int checked(int result, const char *what) {
    if (result < 0) {
        perror(what);
        exit(1);
    }
    return result;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const size_t body_bytes = strtoul(argv[2], nullptr, 10);
    const std::string reply = "HTTP/1.1 200 OK\r\nServer: limit\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
                              "Content-Type: text/html\r\nContent-Length: " + std::to_string(body_bytes) +
                              "\r\nLast-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\nETag: \"0-0\"\r\n\r\n" +
                              std::string(body_bytes, 'x');
    const int listener = checked(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket");
    const int one = 1;
    checked(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), "SO_REUSEADDR");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(atoi(argv[1]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    checked(bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address), "bind");
    checked(listen(listener, 1024), "listen");
    const int loop = checked(epoll_create1(0), "epoll_create1");
    epoll_event event{.events = EPOLLIN, .data = {.fd = listener}};
    checked(epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event), "epoll_ctl");
    for (;;) {
        epoll_event events[256];
        const int count = checked(epoll_wait(loop, events, 256, -1), "epoll_wait");
        for (int i = 0; i < count; i++) {
            const int fd = events[i].data.fd;
            if (fd == listener) {
                int connection;
                while ((connection = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK)) >= 0) {
                    checked(setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "TCP_NODELAY");
                    epoll_event readable{.events = EPOLLIN | EPOLLET, .data = {.fd = connection}};
                    checked(epoll_ctl(loop, EPOLL_CTL_ADD, connection, &readable), "epoll_ctl");
                }
                continue;
            }
            // One request per read: the client of this measurement sends one at a time.
            char request[4096];
            const ssize_t got = recv(fd, request, sizeof request, 0);
            if (got <= 0 || send(fd, reply.data(), reply.size(), MSG_NOSIGNAL) != ssize_t(reply.size())) close(fd);
        }
    }
}
