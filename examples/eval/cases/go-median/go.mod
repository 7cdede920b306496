module median

go 1.22
