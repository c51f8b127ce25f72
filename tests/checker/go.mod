module checker

go 1.24
