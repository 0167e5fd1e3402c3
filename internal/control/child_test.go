package control

func isChild() bool { return false }

func runChild() {}
