package page

// Grid is a table of marks.
type Grid struct {
	ID, Title string // of the element, and its heading
	Corner    string // what the rows are
	Columns   []Column
	Rows      []Row
	Note      string // such as what is left out
	Legend    []Tick
}

// Column is the head of a column.
type Column struct{ Name, Link string }

// Row is a row of a grid.
type Row struct {
	Name, Note string
	Cells      []Cell // one for each column
}

// Cell has marks, whose titles describe them. A cell without marks means that nothing is
// known.
type Cell struct {
	Marks []Tick
	Text  string
}

// Evaluation is what hone eval has recorded so far.
type Evaluation struct {
	Name  string
	About string     // such as how many tries there are
	Head  []string   // of the report
	Rows  [][]string // a model in each; the first cell names it
	Cases *Grid      // by model
}
