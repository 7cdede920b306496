// Package block is the codec of the four syntaxes in which a model answers
// when it has no tools: blocks of lines between marker lines.
//
//	reply   = { block | other line }
//	block   = opening { line } closing
//	opening = "&&&start"   a thought for the user
//	        | "%%%start"   a thought for later rounds, should the build fail
//	        | "^^^" path   a file, whole
//	        | "$$$start"   the reason why no file needs to change
//	closing = "&&&end" | "%%%end" | "^^^end" | "$$$end"
//
// [Parse] reads a reply and says everything that is wrong with it; [Format]
// writes one. Parse(Format(r)) is r for every r of which [Reply.Check] says
// nothing, and for every r that Parse returned.
//
// # Markers
//
// A marker counts only alone on its line (ruling C3). White space around it
// and after its three signs is ignored, and so are the case of "start" and
// "end" and a byte order mark before the first line. Lines end in "\n"; a
// carriage return before it is white space. `^^^ src/main.rs`, an indented
// `^^^ end` and a last line without newline are markers, and a sentence with
// a marker in it is none. Neither is a sign that stands more than three times
// in a row, as compilers underline code and people draw rules with it.
//
// Lines outside blocks are ignored, Markdown fences around an answer
// included. The exception is a slip: three signs with nothing or one word of
// letters after them that is neither "start" nor "end" (`&&&begin`, a bare
// `^^^`). Outside blocks it is a problem, because what follows was most
// likely meant as a block; inside a block it is text, because Erlang's
// comments and compilers' underlines look like this.
//
// # Blocks
//
// Each kind of block is matched on its own, as if the others were not there;
// then no two may overlap or nest. So a marker of any kind inside a block is
// a problem, also in a file that documents this very syntax: there is no
// escape, and such a line has to be changed or the file left alone. A block
// that is not closed is one problem, and the blocks after it are still read.
//
// A file's content is what stands between its marker lines, byte by byte with
// its last line break, carriage returns included; no lines are an empty file
// (ruling C4). So a file that does not end in a line break cannot be written.
// The text of the other blocks is kept likewise, without its last line break.
//
// A path is whatever follows "^^^". Which paths are forbidden is not decided
// here. A file called "end" is written as `^^^./end`.
package block

import "fmt"

// Reply is what a model's answer holds, each kind in the order of the answer.
// The zero Reply holds nothing.
type Reply struct {
	Thoughts []string // &&&: for the user
	Debug    []string // %%%: for the model's own later rounds
	Files    []File   // ^^^: the files to write
	Done     []string // $$$: why no file needs to change
}

// File is one file, whole.
type File struct {
	Path    string // as written, without white space around it
	Content []byte // nil is an empty file, and what Parse returns for one
}

// Problem is one thing that is wrong with a reply, worded for the model that
// wrote it.
type Problem struct {
	// Line is the line that has to change, the first being 1; 0 means the
	// reply as a whole.
	Line int
	// Marker is the marker in question as it is written, shortened where it
	// is long; empty where there is none.
	Marker string
	// Text says what is wrong and what to write instead.
	Text string
}

// String returns the problem as one line that names line and marker.
func (p Problem) String() string {
	switch {
	case p.Line == 0:
		return p.Text
	case p.Marker == "":
		return fmt.Sprintf("line %d: %s", p.Line, p.Text)
	}
	return fmt.Sprintf("line %d: %s %s", p.Line, p.Marker, p.Text)
}
