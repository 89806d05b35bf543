// A child of 32 bits that calls nothing but the kernel: no header is needed to compile it.
static int call(int number, int first, const char *second, int third) {
    int result;
    __asm__ volatile("int $0x80" : "=a"(result) : "0"(number), "b"(first), "c"(second), "d"(third) : "memory");
    return result;
}

void _start(void) {
    call(4, 1, "hello\n", 6);
    call(1, 0, 0, 0);
}
