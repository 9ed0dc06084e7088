package text

import (
	"slices"
	"strings"
)

type trie struct {
	words []string
	ids   []int32
	first [257]int
}

func newTrie(words map[string]int32) *trie {
	t := &trie{}
	for w := range words {
		t.words = append(t.words, w)
	}
	slices.Sort(t.words)
	for _, w := range t.words {
		t.ids = append(t.ids, words[w])
	}
	for c := range 256 {
		t.first[c], _ = slices.BinarySearch(t.words, string([]byte{byte(c)}))
	}
	t.first[256] = len(t.words)
	return t
}

func (t *trie) prefixes(s string, found func(length int, id int32)) {
	if s == "" {
		return
	}
	from, to := t.first[s[0]], t.first[int(s[0])+1]
	for n := 1; from < to; n++ {
		if len(t.words[from]) == n {
			found(n, t.ids[from])
			from++
		}
		if n == len(s) || from == to {
			return
		}
		c := s[n]
		low, high := from, to
		for low < high {
			if mid := (low + high) / 2; t.words[mid][n] < c {
				low = mid + 1
			} else {
				high = mid
			}
		}
		from, high = low, to
		for low < high {
			if mid := (low + high) / 2; t.words[mid][n] <= c {
				low = mid + 1
			} else {
				high = mid
			}
		}
		if to = low; to-from == 1 && !strings.HasPrefix(s, t.words[from]) {
			return
		}
	}
}
