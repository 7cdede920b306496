package model

// Meter reads the usage of a response that a program passes on to another one.
// It is called with the data of each event of a stream, in order, or with a
// response that is not a stream, and returns what the response has said so far.
// It keeps none of the response's text, and ignores data that it cannot read.
//
// Each provider's package makes a Meter for one response.
type Meter func(data []byte) Metered

// Metered is what a response has said so far.
type Metered struct {
	// Usage is nil before the response gives a finish reason, and if it reports
	// no usage or something that cannot be counts of tokens.
	Usage *Usage
	// Reported means that the response reports a usage, readable or not.
	Reported bool
	// Final means that nothing can follow that changes Usage.
	Final bool
	// Fault is the provider's error inside the response, as one line; empty
	// means none.
	Fault string
}
