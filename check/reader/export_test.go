package reader

var CleanFile = cleanFile
