/* ones returns how many bits of a number are 1, also of a negative one. */
int ones(int number);

/* highest returns the position of the highest bit that is 1, counted from 0; -1 if there
 * is none. */
int highest(unsigned number);
