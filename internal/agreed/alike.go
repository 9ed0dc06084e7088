package agreed

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strings"
)

type Setting struct {
	// What and Text are its name and value in errors; Key decides equality.
	What, Text, Key string
}

func Sum(list []Setting) int64 {
	text := ""
	for _, x := range list {
		text += x.Key
	}
	return hashOf(text)
}

func hashOf(text string) int64 {
	h := fnv.New32a()
	h.Write([]byte(text))
	return int64(h.Sum32())
}

// Difference names the first setting in which two ranks differ. exchange passes this process's text, "" after its last
// setting, and returns those of both ranks.
func Difference(list []Setting, a, b int, exchange func(own string) (first, second string, err error)) (string, error) {
	for i := 0; ; i++ {
		own := ""
		if i < len(list) {
			own = strings.Join([]string{fmt.Sprintf("%x", hashOf(list[i].Key)), list[i].Text, list[i].What, list[i].Key}, "\x1f")
		}
		first, second, err := exchange(own)
		if err != nil {
			return "", err
		}
		key, first, _ := strings.Cut(first, "\x1f")
		otherKey, second, _ := strings.Cut(second, "\x1f")
		switch {
		case key == otherKey && key != "":
			continue
		case first < second: // first the part that the other may lack
			first, second, a, b = second, first, b, a
			fallthrough
		case key != otherKey:
			has, what, _ := strings.Cut(first, "\x1f")
			other, otherWhat, _ := strings.Cut(second, "\x1f")
			what, hidden, _ := strings.Cut(what, "\x1f")
			_, otherHidden, _ := strings.Cut(otherWhat, "\x1f")
			if has == other { // the texts lack the difference
				has, other = shown(has, hidden), shown(other, otherHidden)
			}
			return fmt.Sprintf("%s: rank %d has %s, rank %d %s", what, a, has, b, cmp.Or(other, "none")), nil
		}
		return "the order or number of their tasks and callbacks", nil
	}
}

func shown(text, key string) string {
	return fmt.Sprintf("%s [%s]", text, strings.Join(strings.Fields(key), " "))
}
