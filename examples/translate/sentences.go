package main

import (
	"iter"
	"math/rand/v2"
	"slices"
)

type pair struct{ source, target []string }

type noun struct {
	source, target string
	gender         int
}

var (
	determiners = [][2]string{{"the", "l"}, {"a", "un"}, {"some", "alk"}} // "a" has no plural
	adjectives  = [][2]string{
		{"old", "vet"}, {"wild", "fer"}, {"small", "mik"}, {"proud", "sup"}, {"pale", "blek"}, {"quick", "rap"}}
	nouns = []noun{
		{"cat", "kat", 0}, {"dog", "hun", 0}, {"king", "rek", 0}, {"bird", "avel", 0},
		{"queen", "regin", 1}, {"ship", "nav", 1}, {"star", "stel", 1}, {"bear", "urs", 1}}
	verbs = [][2]string{
		{"saw", "vid"}, {"heard", "odi"}, {"followed", "sek"}, {"fed", "nutri"}, {"feared", "tim"}, {"called", "klam"}}
	adverbs      = [][2]string{{"yesterday", "jer"}, {"often", "oft"}, {"never", "nunk"}}
	conjunctions = [][2]string{{"and", "et"}, {"because", "kar"}}
)

// sentences yields pairs without end; each depends only on the seed and its index.
//
//	the old cat saw some wild bears yesterday   the subject, what it did, to whom, when
//	jer ursin feras alka kat veto lo videte     when, to whom, the subject, what it did
//
// In the target, adjectives follow their noun in reverse, then its determiner. Nouns have endings for plural and
// object. Adjectives and determiners agree with the noun's gender, adjectives also with its number; verbs with the
// subject's number and the object's gender. With "because" the second clause comes first.
func sentences(seed uint64, clauses int) iter.Seq2[pair, error] {
	return func(yield func(pair, error) bool) {
		for i := uint64(0); ; i++ {
			if !yield(sentence(rand.New(rand.NewPCG(seed, i)), clauses), nil) {
				return
			}
		}
	}
}

func sentence(random *rand.Rand, clauses int) pair {
	first := clause(random)
	if clauses < 2 || random.IntN(2) == 0 {
		return first
	}
	second, kind := clause(random), random.IntN(2)
	link := conjunctions[kind]
	p := pair{source: slices.Concat(first.source, []string{link[0]}, second.source)}
	if kind == 1 {
		first, second = second, first
	}
	p.target = slices.Concat(first.target, []string{link[1]}, second.target)
	return p
}

func clause(random *rand.Rand) pair {
	subject, several, _ := phrase(random, "")
	object, _, gender := phrase(random, "n")
	verb := verbs[random.IntN(len(verbs))]
	does := verb[1] + [2]string{"et", "ant"}[several] + [2]string{"", "e"}[gender]
	p := pair{
		source: slices.Concat(subject.source, []string{verb[0]}, object.source),
		target: slices.Concat(object.target, subject.target, []string{does}),
	}
	if random.IntN(2) == 0 {
		adverb := adverbs[random.IntN(len(adverbs))]
		p.source, p.target = append(p.source, adverb[0]), slices.Insert(p.target, 0, adverb[1])
	}
	return p
}

// phrase is a noun with its words; object is an object's ending.
func phrase(random *rand.Rand, object string) (p pair, several, gender int) {
	of, determiner := nouns[random.IntN(len(nouns))], determiners[random.IntN(len(determiners))]
	if several = random.IntN(2); determiner[0] == "a" {
		several = 0
	}
	agreed := [2]string{"o", "a"}[of.gender]
	p.source, p.target = []string{determiner[0]}, []string{determiner[1] + agreed}
	for range random.IntN(3) {
		a := adjectives[random.IntN(len(adjectives))]
		p.source, p.target = append(p.source, a[0]), append(p.target, a[1]+agreed+[2]string{"", "s"}[several])
	}
	p.source = append(p.source, of.source+[2]string{"", "s"}[several])
	p.target = append(p.target, of.target+[2]string{"", "i"}[several]+object)
	slices.Reverse(p.target)
	return p, several, of.gender
}
