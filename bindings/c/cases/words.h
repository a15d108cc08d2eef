/* Reads and writes the lines of an actor, whose form is in bindings/cases/README.md. */
#ifndef EYEWALL_WORDS_H
#define EYEWALL_WORDS_H

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 16, TAGS_MAX = 32 };

/* A decoded word. A zero follows its bytes. */
struct word {
    char *bytes;
    size_t length;
};

/* Decodes a word in place. */
static struct word decoded(char *text) {
    struct word word = {text, 0};
    if (strcmp(text, "%") == 0) {
        *text = 0;
        return word;
    }
    for (char *from = text; *from != 0; word.length++) {
        char digits[3] = {0};
        if (*from == '%' && isxdigit((unsigned char)from[1]) && isxdigit((unsigned char)from[2])) {
            memcpy(digits, from + 1, 2);
            text[word.length] = (char)strtol(digits, NULL, 16);
            from += 3;
        } else {
            text[word.length] = *from++;
        }
    }
    text[word.length] = 0;
    return word;
}

/* Splits a line at its tabs, and returns the number of words. */
static int split(char *line, struct word *words) {
    int count = 0;
    line[strcspn(line, "\n")] = 0;
    for (char *text = strtok(line, "\t"); text != NULL && count < WORDS_MAX; text = strtok(NULL, "\t"))
        words[count++] = decoded(text);
    return count;
}

static void answer(const char *first) {
    puts(first);
    fflush(stdout);
}

static void answer_bytes(const char *first, const void *bytes, size_t length) {
    printf("%s\t", first);
    if (length == 0)
        putchar('%');
    for (const unsigned char *at = bytes; length > 0; length--, at++) {
        if (isalnum(*at) || (*at != 0 && strchr("-_./", *at) != NULL))
            putchar(*at);
        else
            printf("%%%02x", *at);
    }
    putchar('\n');
    fflush(stdout);
}

static void answer_number(const char *first, long long number) {
    printf("%s\t%lld\n", first, number);
    fflush(stdout);
}

#endif
