package main

import (
	"math/rand/v2"
	"strings"
)

var (
	things = []string{"the soup", "the tea", "the room", "our waiter", "the view", "the bread", "the music", "the whole evening", "the bill"}
	praise = []string{"good", "fine", "a delight", "excellent", "better than we hoped", "lovely"}
	blame  = []string{"bad", "cold", "a disaster", "awful", "worse than we feared", "boring"}
)

// reviews makes n reviews of one to three clauses, labelled 1 if good. The last clause decides and "not" negates: word
// order matters.
func reviews(n int) (texts []string, good []float32) {
	random := rand.New(rand.NewPCG(1, 0))
	pick := func(words []string) string { return words[random.IntN(len(words))] }
	for range n {
		var clauses []string
		last := 0
		for range 1 + random.IntN(3) {
			turned := random.IntN(2)
			last = random.IntN(2)
			words := []string{pick(things), "was"}
			if turned == 1 {
				words = append(words, "not")
			}
			words = append(words, pick([][]string{blame, praise}[last^turned]))
			clauses = append(clauses, strings.Join(words, " "))
		}
		texts, good = append(texts, strings.Join(clauses, " but ")), append(good, float32(last))
	}
	return texts, good
}
