module performance

go 1.26.0
