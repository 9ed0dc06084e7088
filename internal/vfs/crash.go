package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash returns the file system as it may be after a power loss, without locks; m is unchanged. Each non-durable change
// survives with the given chance: 0 loses all, 1 none. In between, each name and file is drawn separately, and a file
// may lose its end, or have zeros or noise in some blocks. random may be nil for 0 and 1.
func (m *Mem) Crash(chance float64, random *rand.Rand) *Mem {
	defer m.lock()()
	c := &crash{chance, random}
	return &Mem{root: *c.node(&m.root)}
}

type crash struct {
	chance float64
	random *rand.Rand
}

func (c *crash) lucky() bool { return c.chance >= 1 || c.chance > 0 && c.random.Float64() < c.chance }

func (c *crash) node(n *node) *node {
	if !n.dir {
		content := slices.Clip(c.content(n))
		return &node{content: content, synced: content}
	}
	all := maps.Clone(n.kept)
	if all == nil {
		all = map[string]*node{}
	}
	maps.Copy(all, n.names)
	names := map[string]*node{}
	for _, name := range slices.Sorted(maps.Keys(all)) { // for reproducible seeds
		child := n.kept[name]
		if now := n.names[name]; now != child && c.lucky() {
			child = now
		}
		if child != nil {
			names[name] = c.node(child)
		}
	}
	return &node{dir: true, names: names, kept: maps.Clone(names)}
}

const block = 512

func (c *crash) content(n *node) []byte {
	lost := len(n.content) - len(n.synced)
	switch {
	case lost == 0 || c.chance <= 0:
		return n.synced
	case c.lucky():
		return n.content
	case lost < 0: // a lock's note was overwritten
		return n.synced
	}
	start, end := len(n.synced), len(n.content)
	if !c.lucky() {
		end = start + c.random.IntN(lost+1)
	}
	content := slices.Clone(n.content[:end])
	for ; start < len(content); start += block {
		part := content[start:min(start+block, len(content))]
		switch {
		case c.lucky():
		case c.lucky():
			clear(part)
		default:
			for i := range part {
				part[i] = byte(c.random.Uint32())
			}
		}
	}
	return content
}
