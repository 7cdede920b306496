module hone/fleet

go 1.26.0

require hone v0.0.0

require (
	github.com/bmatcuk/doublestar/v4 v4.10.4 // indirect
	github.com/klauspost/compress v1.19.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace hone => ../
