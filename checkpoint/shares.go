package checkpoint

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/shares"
)

var errGivenUp = errors.New("the folder that rank 0 made for the parts does not exist: rank 0 has cancelled the save, or this process sees another folder")

const patience = 10 * time.Minute

// lastCall replaces patience when the others write nothing more: another host's file may appear late.
const lastCall = 10 * time.Second

func shareName(rank int) string { return fmt.Sprintf("rank-%05d.safetensors", rank) }

func failedName(rank int) string { return fmt.Sprintf("rank-%05d.failed", rank) }

func shareRank(name string) (int, bool) {
	digits := strings.TrimPrefix(name, "rank-")
	digits, _, _ = strings.Cut(digits, ".")
	rank, err := strconv.Atoi(digits)
	return rank, err == nil && rank >= 0 && (name == shareName(rank) || name == failedName(rank))
}

const (
	// the last tensor: CRC-32C of the parts
	sumsName = "crc32c"
	tokenKey = "lazo.slot"
)

func (d *draft) divide(tensors []Tensor) error {
	d.tensors = nil
	for _, t := range tensors {
		if t.Parts == nil {
			if d.share.Rank == 0 {
				d.tensors = append(d.tensors, t)
			}
			continue
		}
		if err := d.addSharded(t); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
	}
	for _, t := range d.tensors {
		if _, twice := d.manifest.cuts[t.Name]; twice {
			return fmt.Errorf("tensor %q: a second tensor of this name, which is sharded", t.Name)
		}
	}
	if len(d.manifest.cuts) == 0 {
		return nil
	}
	d.manifest.format = shardedFormat
	d.parts = inOrder(d.parts)
	return d.checkShare()
}

func (d *draft) addSharded(t Tensor) error {
	s := d.share
	_, twice := d.manifest.cuts[t.Name]
	switch {
	case s.Of < 2 || s.Rank < 0 || s.Rank >= s.Of:
		return fmt.Errorf("it is sharded, and the content is share %d of %d: expected a Share of several processes, as Resume passes it", s.Rank, s.Of)
	case s.At.Token <= 0 || s.At.Again <= 0:
		return errors.New("it is sharded over several processes, which save it together: give the content the Slot of rank 0's Folder.Begin, or use Resume")
	case t.Data != nil || t.Write != nil:
		return errors.New("it has Parts, and also Data or Write: set either Parts or one of Data and Write")
	case twice:
		return errors.New("a second tensor of this name")
	}
	if err := checkName(t.Name); err != nil {
		return err
	}
	c := &shardedTensor{DType: t.DType, Dims: slices.Clone(t.Dims)}
	for _, p := range t.Parts {
		if c.Part == nil {
			c.Part = slices.Clone(p.Dims)
			if err := c.checkForm(); err != nil {
				return err
			}
		}
		if !slices.Equal(c.Part, p.Dims) {
			return fmt.Errorf("parts of dims %v and %v: expected equal dims", c.Part, p.Dims)
		}
		if _, err := c.place(p.Start); err != nil {
			return err
		}
		part := c.part(t.Name, p.Start)
		d.parts = append(d.parts, Tensor{Name: part.Name, DType: part.DType, Dims: part.Dims, Data: p.Data, Write: p.Write})
		d.of[part.Name] = partOf{t.Name, slices.Clone(p.Start)}
	}
	d.manifest.cuts[t.Name] = c
	return nil
}

type partOf struct {
	tensor string
	start  []int
}

func (d *draft) shareHeader() []safetensors.Tensor {
	list := make([]safetensors.Tensor, 0, len(d.parts)+1)
	for i := range d.parts {
		list = append(list, d.parts[i].tensor())
	}
	return append(list, safetensors.Tensor{Name: sumsName, DType: safetensors.U32, Dims: []int{len(d.parts)}})
}

func metadata(s shares.Share) map[string]string {
	return map[string]string{tokenKey: fmt.Sprintf("%016x", s.At.Token)}
}

func (d *draft) checkShare() error {
	if _, err := safetensors.NewWriter(io.Discard, d.shareHeader(), metadata(d.share)); err != nil {
		return err
	}
	return checkSizes(d.parts)
}

func (d *draft) writeShare(w io.Writer) error {
	counted := &counter{w: w}
	file, err := safetensors.NewWriter(counted, d.shareHeader(), metadata(d.share))
	if err != nil {
		return err
	}
	own := stateSum{HeaderSize: counted.n, HeaderSum: crc(file.HeaderChecksum())}
	var sums []byte
	for _, t := range d.parts {
		sum, err := file.WriteFunc(t.Name, t.writeTo)
		if err != nil {
			return err
		}
		sums = binary.LittleEndian.AppendUint32(sums, uint32(sum))
		at := d.of[t.Name]
		c := d.manifest.cuts[at.tensor]
		c.Parts = append(c.Parts, shardPlace{d.share.Rank, at.start, crc(sum)})
	}
	if _, err := file.Write(sumsName, sums); err != nil {
		return err
	}
	own.Size = counted.n
	d.manifest.ranks[shareName(d.share.Rank)] = own
	return file.Close()
}

func (d *draft) gather(ctx context.Context, open opener, dir string, log *slog.Logger) error {
	begin, over, warn := time.Now(), d.over, time.After(lastCall)
	late := func(limit time.Duration, why string) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errors.New(why))
		context.AfterFunc(ctx, cancel)
	}
	late(patience, fmt.Sprintf("it is still missing %s after the parts of rank 0 were written", patience))
	for rank := 1; rank < d.share.Of; rank++ {
		pause := time.Millisecond
		for {
			came, err := d.take(open, dir, rank)
			if err != nil {
				return fmt.Errorf("rank %d: %w", rank, err)
			}
			if came {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("the file %s of rank %d: %w", shareName(rank), rank, context.Cause(ctx))
			case <-over:
				over = nil
				late(lastCall, "it is missing, and the other processes have stopped writing: one of them could not write, or the run has failed")
			case <-warn:
				warn = time.After(time.Minute)
				log.Warn("checkpoint: rank 0 waits for the parts of another process", "step", int64(d.manifest.step), "rank", rank,
					"file", dir+"/"+shareName(rank), "for", time.Since(begin).Round(time.Second))
			case <-time.After(pause):
				pause = min(2*pause, time.Second)
			}
		}
	}
	for _, name := range sortedKeys(d.manifest.cuts) {
		if err := d.manifest.cuts[name].check(); err != nil {
			return fmt.Errorf("tensor %q, of which the processes gave their parts: %w", name, err)
		}
	}
	return nil
}

// errShare replaces a cause that could not be written.
var errShare = errors.New("it could not write them; see the error of that rank for the reason")

func marked(mark file) error {
	text := make([]byte, len(markPrefix)+markLimit)
	n, _ := mark.ReadAt(text, 0) // an unreadable mark counts as lost
	if why, ok := strings.CutPrefix(string(text[:n]), markPrefix); ok {
		return errors.New(strings.ToValidUTF8(why, ""))
	}
	return errShare
}

func (d *draft) take(open opener, dir string, rank int) (came bool, err error) {
	path := dir + "/" + shareName(rank)
	file, err := open(path)
	if errors.Is(err, fs.ErrNotExist) {
		mark, err := open(dir + "/" + failedName(rank))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err == nil {
			err = errors.Join(marked(mark), mark.Close())
		}
		return false, err
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return false, err
	}
	reader, err := safetensors.NewReader(file, size, safetensors.Limits{})
	if err != nil {
		return false, err
	}
	if reader.Metadata()[tokenKey] != metadata(d.share)[tokenKey] { // from an earlier attempt, in a store
		return false, nil
	}
	sums, _, err := reader.Read(sumsName)
	if err != nil {
		return false, err
	}
	own, i := stateSum{Size: size, HeaderSize: size, HeaderSum: crc(reader.HeaderChecksum())}, 0
	for h := range reader.Tensors() {
		length, err := h.ByteSize()
		if err != nil {
			return false, err
		}
		if own.HeaderSize -= length; h.Name == sumsName {
			continue
		}
		if len(sums) < 4*i+4 {
			return false, fmt.Errorf("%s: %d checksums for more parts", path, len(sums)/4)
		}
		sum := crc(binary.LittleEndian.Uint32(sums[4*i:]))
		if i++; !d.takePart(h, rank, sum) {
			return false, fmt.Errorf("%s has %q, %v of dims %v: it is not a part of a tensor that rank 0 saves: the processes do not save the same state", path, h.Name, h.DType, h.Dims)
		}
	}
	d.manifest.ranks[shareName(rank)] = own
	return true, nil
}

func (d *draft) takePart(h safetensors.Tensor, rank int, sum crc) bool {
	name, start, ok := parsePart(h.Name)
	c := d.manifest.cuts[name]
	if !ok || c == nil || c.DType != h.DType {
		return false
	}
	if c.Part == nil {
		c.Part = slices.Clone(h.Dims)
		if c.checkForm() != nil {
			return false
		}
	}
	if _, err := c.place(start); err != nil || !slices.Equal(c.Part, h.Dims) || partName(name, start, c.Part) != h.Name {
		return false
	}
	c.Parts = append(c.Parts, shardPlace{rank, start, sum})
	return true
}

// Begin makes a slot for a checkpoint of several processes, at rank 0, which sends it to all. Save or [Folder.GiveUp]
// must follow.
func (f *Folder) Begin(ctx context.Context, step Step) (shares.Slot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.begin(ctx, step)
	return s, f.wrap(err, "begin the save of step %d", step)
}

func (f *Folder) begin(ctx context.Context, step Step) (shares.Slot, error) {
	if err := f.use(true); err != nil {
		return shares.Slot{}, err
	}
	if err := f.clean(ctx); err != nil {
		return shares.Slot{}, err
	}
	at, err := f.free(ctx, step)
	if err != nil {
		return shares.Slot{}, err
	}
	s := shares.Slot{Again: int64(at.again), Token: freshToken()}
	return s, f.medium.begin(ctx, tempOf(s))
}

func tempOf(s shares.Slot) string { return fmt.Sprintf("%s%016x", tempPrefix, s.Token) }

func placeIn(s shares.Slot, step Step) place { return place{step, int(s.Again)} }

// GiveUp records why a share of a step will not come. Rank 0's call removes the slot; another's ends rank 0's wait. A
// failed [Folder.Save] or [Async.Save] calls it.
func (f *Folder) GiveUp(ctx context.Context, step Step, share shares.Share, why error) error {
	var err error
	if name, temp := placeIn(share.At, step).String(), tempOf(share.At); share.Rank == 0 {
		err = f.medium.giveUp(ctx, name, temp)
	} else {
		err = f.medium.mark(ctx, name, temp, failedName(share.Rank), fmt.Sprintf("%s%.*s", markPrefix, markLimit, why))
	}
	return f.wrap(err, "cancel the save of step %d", step)
}

const (
	markPrefix = "lazo: "
	markLimit  = 500
)

func (f *Folder) saveShare(ctx context.Context, d *draft) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.use(false); err != nil {
		return err
	}
	at := d.share.At
	err := f.medium.share(ctx, placeIn(at, d.manifest.step).String(), tempOf(at), shareName(d.share.Rank),
		func(w io.Writer) error { return d.writeShare(&patient{ctx, w}) })
	if err != nil {
		err = fmt.Errorf("the parts of rank %d: %w", d.share.Rank, err)
		err = errors.Join(err, f.GiveUp(context.WithoutCancel(ctx), d.manifest.step, d.share, err))
	}
	return err
}
