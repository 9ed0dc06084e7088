package main

func cpuSeconds() float64 { return 0 }

func rssMB() int { return 0 }

func syncDisks() {}
