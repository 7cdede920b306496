module notes

go 1.22
