// A small CGI program: an answer of as many bytes as its query says.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    const char *query = getenv("QUERY_STRING");
    int bytes = query ? atoi(query) : 0;
    printf("Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n", bytes);
    for (int i = 0; i < bytes; i++) putchar('x');
    return 0;
}
