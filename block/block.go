// Package block reads and writes the replies of a model that has no tools:
// blocks of lines between marker lines.
//
//	reply   = { block | other line }
//	block   = opening { line } closing
//	opening = "&&&start"   a thought for the user
//	        | "%%%start"   a thought for later rounds, if the build fails
//	        | "^^^" path   a complete file
//	        | "$$$start"   the reason why no file needs to change
//	closing = "&&&end" | "%%%end" | "^^^end" | "$$$end"
//	        | "^^^delete"  in place of "^^^end": the file is to be deleted
//
// [Parse] reads a reply and returns all its problems; [Format] writes one.
// Parse(Format(r)) equals r for every r that Parse returned.
//
// # Markers
//
// A marker counts only alone on its line (ruling C3). White space around it and
// after its three signs is ignored, and so are the case of "start" and "end"
// and a byte order mark at the start. A sentence that contains a marker is not
// one, and neither is a sign repeated more than three times, as in compilers'
// underlines and in rulers.
//
// Lines outside blocks are ignored, including Markdown fences around a reply. Three
// signs followed by nothing, or by another word, are text, because Erlang's comments and
// compilers' underlines look like this.
//
// # Blocks
//
// A block is closed by the next marker of its kind. A marker of another kind in it is
// a problem, even in a file that documents this syntax: there is no escape, so
// such a line must change or the file must be left alone. A block that is not
// closed is one problem, and the blocks after it are still read.
//
// A file's content is everything between its marker lines, byte for byte,
// including carriage returns and the last line break; no lines make an empty
// file (ruling C4). So a file without a final line break cannot be written. The
// text of other blocks is the same without its last line break.
//
// A path is everything that follows "^^^", without backticks around it. This package
// does not decide which paths are forbidden. A file called "end" or "delete" is
// written as `^^^./end`. A file is deleted by its path and "^^^delete", with nothing
// between; a "^^^end" after that is ignored.
package block

import (
	"fmt"
	"strings"
)

// Reply is the content of a model's reply, each kind in the order of the reply.
// The zero Reply is empty.
type Reply struct {
	Thoughts []string // &&&: for the user
	Debug    []string // %%%: for the model's own later rounds
	Files    []File   // ^^^: files to write or delete
	Done     []string // $$$: why no file needs to change
}

// File is one complete file.
type File struct {
	Path    string // as written, without white space around it
	Content []byte // nil means an empty file; Parse returns nil for one
	Delete  bool   // the file is to be deleted; Content is nil
}

// Problem is one problem of a reply, worded for the model that wrote it.
type Problem struct {
	// Line is the line to change, starting at 1; 0 means the complete reply.
	Line int
	// Marker is the marker in question as written, shortened if long; empty if
	// there is none.
	Marker string
	// Text says what is wrong and what to write instead.
	Text string
}

// String returns the problem as one line with line number and marker.
func (p Problem) String() string {
	switch {
	case p.Line == 0:
		return p.Text
	case p.Marker == "":
		return fmt.Sprintf("line %d: %s", p.Line, p.Text)
	}
	return fmt.Sprintf("line %d: %s %s", p.Line, p.Marker, p.Text)
}

// Format writes a reply: thoughts, debugging thoughts, files and $$$ blocks,
// separated by empty lines and ending in a line break. The zero Reply is the
// empty text. Format adds a missing final line break to a file. It does not
// check whether Parse would read the same reply.
func Format(r Reply) string {
	var blocks []string
	write := func(first, content, last string) {
		blocks = append(blocks, first+"\n"+content+last+"\n")
	}
	say := func(k kind, texts []string) {
		for _, s := range texts {
			if s != "" {
				s += "\n"
			}
			write(openings[k], s, closings[k])
		}
	}
	say(thought, r.Thoughts)
	say(debug, r.Debug)
	for _, f := range r.Files {
		mark := "^^^"
		if strings.HasPrefix(f.Path, "^") {
			mark += " " // with a fourth sign in a row the line would not be a marker
		}
		content := string(f.Content)
		if content != "" && !strings.HasSuffix(content, "\n") {
			content += "\n"
		}
		if f.Delete {
			write(mark+f.Path, "", "^^^delete")
		} else {
			write(mark+f.Path, content, closings[file])
		}
	}
	say(done, r.Done)
	return strings.Join(blocks, "\n")
}
