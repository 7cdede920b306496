package block_test

import (
	"fmt"

	"hone/block"
)

// Parse returns a reply together with its problems.
func Example() {
	reply, problems := block.Parse(`Here is the fix.

&&&start
The greeting was misspelt.
&&&end

^^^hello.txt
hello
^^^end

^^^./hello.txt
hello again
^^^end

%%%start
look at hello.txt first
`)
	fmt.Println(reply.Thoughts)
	for _, p := range problems {
		fmt.Println(p)
	}
	// Output:
	// [The greeting was misspelt.]
	// line 11: ^^^./hello.txt is the same file as in line 7; write each file once and complete
	// line 15: %%%start is not closed; write %%%end alone on a line after its text
}

func ExampleFormat() {
	fmt.Print(block.Format(block.Reply{
		Debug: []string{"the linker wants main.o first"},
		Files: []block.File{{Path: "a.txt", Content: []byte("a\n")}},
	}))
	// Output:
	// %%%start
	// the linker wants main.o first
	// %%%end
	//
	// ^^^a.txt
	// a
	// ^^^end
}
