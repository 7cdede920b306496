#!/bin/sh
# Prints the number of lines of each file in a directory, and its name.
for file in $(ls $1); do
	echo $(wc -l < $1/$file) $file
done
