package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash is the file system as a machine may find it that lost its power now and started again; m itself goes on. Of
// what was not made durable, each thing is kept with the given chance: 0 loses all of it, 1 nothing. In between, each
// name of a folder and each file is drawn for itself, and half a file may have lost its end, or hold zeros or noise in
// place of some of its blocks. No lock is held. For 0 and 1, random may be nil.
//
// Real file systems lose less: most of them keep the order of names, and a renamed file has its old name or its new
// one. Here it may have both or none.
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
	for _, name := range slices.Sorted(maps.Keys(all)) { // sorted, so that a seed gives the same crash again
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
	case lost < 0: // a lock's note was written over
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
