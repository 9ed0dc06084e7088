package images

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	_ "image/png" // for formats beyond internal/png
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/internal/png"
)

type imageFolder struct {
	dir    string
	format Format
	files  []imageFile
	kept   keptImages
}

type imageFile struct {
	path  string
	class int32
}

// Resize is the way to the requested size. The zero Resize refuses images of another size.
type Resize int

const (
	// Stretch scales height and width independently.
	Stretch Resize = iota + 1
	// CropCentre scales the image, with its aspect ratio, until it covers the size, and crops the centre.
	CropCentre
)

// Format describes an image's array.
type Format struct {
	// Height and Width are in pixels.
	Height, Width int
	// Channels is 1 for grey (ITU-R 601 luma) or 3 for RGB; 0 means 3. Transparent parts are black.
	Channels int
	// Resize is for images of another size. The filter is a triangle.
	Resize Resize
	// MaxPixels refuses larger images before decoding, which takes up to 16 bytes per pixel; 0 means 2048 x 2048.
	MaxPixels int
	// Cache is the bytes of memory for resized images, 4 per pixel and channel, which a set of [Open] keeps for later
	// epochs. Changes of files are then not noticed.
	Cache int64
	// Classes are those of [Open] in the order of labels. A class needs no subfolder; a subfolder of another name is an
	// error. Empty means the subfolders' names, sorted.
	Classes []string
}

const (
	imagePixels = 2048 * 2048
	imageSide   = 1 << 15
	imageResult = 1 << 28
)

// Open makes a set of the images in dir, with one subfolder for each class: cat/1.png, cat/2.jpg, dog/1.jpeg, … Field
// "x" is float32 [n, height, width, channels], 0 to 1; "y" is int32 [n], with the names of its Classes. Names that
// start with a dot are ignored; other files, empty classes and links out of dir are errors.
//
// Images are read with their batch. An unreadable image is an [*fs.PathError] instead of its batch.
func Open(dir string, format Format) (*data.Set, error) {
	format.Classes = slices.Clone(format.Classes)
	f := &imageFolder{dir: dir, format: format}
	err := f.format.check()
	if err == nil {
		err = f.list()
	}
	var set *data.Set
	if err == nil {
		set, err = f.examples()
	}
	if err != nil {
		return nil, fmt.Errorf("images: open %s: %w", dir, err)
	}
	return set, nil
}

func (f *Format) check() error {
	f.Channels = cmp.Or(f.Channels, 3)
	f.MaxPixels = cmp.Or(f.MaxPixels, imagePixels)
	switch {
	case f.Height < 1 || f.Width < 1 || f.Height > imageSide || f.Width > imageSide:
		return fmt.Errorf("the Format asks for %d x %d pixels (height, width), expected 1 to %d", f.Height, f.Width, imageSide)
	case f.Channels != 1 && f.Channels != 3:
		return fmt.Errorf("the Format asks for %d channels, expected 1 or 3", f.Channels)
	case f.Resize < 0 || f.Resize > CropCentre:
		return fmt.Errorf("unknown policy Resize(%d), expected 0, images.Stretch or images.CropCentre", int(f.Resize))
	case f.Height*f.Width > imageResult:
		return fmt.Errorf("the Format asks for %d x %d pixels (height, width), expected at most %d in all", f.Height, f.Width, imageResult)
	case f.Cache < 0:
		return fmt.Errorf("Format.Cache is %d bytes, expected 0 for none, or more", f.Cache)
	case f.MaxPixels < 0:
		return fmt.Errorf("Format.MaxPixels is %d, expected at least 1, or 0 for %d", f.MaxPixels, imagePixels)
	}
	for i, c := range f.Classes {
		if slices.Contains(f.Classes[:i], c) {
			return fmt.Errorf("Format.Classes has %q twice, expected each class once", c)
		}
	}
	return nil
}

func (f *imageFolder) list() error {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	classes, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	own := len(f.format.Classes) == 0
	for _, c := range classes {
		if strings.HasPrefix(c.Name(), ".") {
			continue
		}
		if info, err := root.Stat(c.Name()); err != nil {
			return err
		} else if !info.IsDir() {
			return fmt.Errorf("%s is not a folder, expected one folder for each class and nothing else", c.Name())
		}
		images, err := fs.ReadDir(root.FS(), c.Name())
		if err != nil {
			return err
		}
		if own {
			f.format.Classes = append(f.format.Classes, c.Name())
		}
		class := slices.Index(f.format.Classes, c.Name())
		if class < 0 {
			return fmt.Errorf("the folder %s is not among Format.Classes, %s: leave it out, or name its class", c.Name(), listed.Some(f.format.Classes))
		}
		before := len(f.files)
		for _, i := range images {
			name := path.Join(c.Name(), i.Name())
			switch ending := strings.ToLower(path.Ext(name)); {
			case strings.HasPrefix(i.Name(), "."):
			case !slices.Contains([]string{".png", ".jpg", ".jpeg"}, ending):
				return fmt.Errorf("%s is not an image, expected files that end in .png, .jpg or .jpeg", name)
			default:
				f.files = append(f.files, imageFile{name, int32(class)})
			}
		}
		if len(f.files) == before {
			return fmt.Errorf("the class %s has no images", c.Name())
		}
	}
	if len(f.files) == 0 {
		return errors.New("there are no images, expected one folder for each class with PNG or JPEG files")
	}
	return nil
}

func (f *imageFolder) examples() (*data.Set, error) {
	numbers, classes := make([]int32, len(f.files)), make([]int32, len(f.files))
	for i, file := range f.files {
		numbers[i], classes[i] = int32(i), file.class
	}
	y := data.Y(classes, len(classes))
	y.Classes = f.format.Classes
	set, err := data.New(data.Named(imageField, numbers, len(numbers)), y)
	if err != nil {
		return nil, err
	}
	return set.MapBatches(f.read)
}

const imageField = "image"

func (f *imageFolder) read(b data.Batch) (data.Batch, error) {
	times := timer{b, time.Now()}
	b, err := data.OnField(imageField, func(numbers data.Array) (data.Array, error) { return f.load(numbers.Flat.([]int32), &times) })(b)
	if err == nil {
		b, err = data.Rename(imageField, "x")(b)
	}
	if err != nil {
		return data.Batch{}, fmt.Errorf("images: load: %w", err)
	}
	return b, nil
}

func (f *imageFolder) load(numbers []int32, times *timer) (data.Array, error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return data.Array{}, err
	}
	defer root.Close()
	dims := []int{len(numbers), f.format.Height, f.format.Width, f.format.Channels}
	size := dims[1] * dims[2] * dims[3]
	x := make([]float32, len(numbers)*size)
	for i, n := range numbers {
		name, to := f.files[n].path, x[i*size:(i+1)*size]
		if f.kept.get(n, to) {
			continue
		}
		times.end("copy")
		if err := openFile(root, name, f.format, to, times); err != nil {
			return data.Array{}, &fs.PathError{Op: "read", Path: path.Join(f.dir, name), Err: err}
		}
		f.kept.put(n, to, f.format.Cache)
	}
	times.end("copy")
	return data.Array{Flat: x, Dims: dims}, nil
}

type timer struct {
	batch data.Batch
	begin time.Time
}

func (t *timer) end(stage string) {
	now := time.Now()
	t.batch.Note(stage, now.Sub(t.begin))
	t.begin = now
}

func openFile(root *os.Root, name string, format Format, to []float32, times *timer) error {
	info, err := root.Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("not a regular file (%v)", info.Mode().Type())
	}
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return readImage(file, format, to, times)
}

// Read reads a PNG or JPEG image as float32 [height, width, channels], 0 to 1. Too many pixels
// are a [data.ErrLimit].
func Read(r io.ReadSeeker, format Format) (data.Array, error) {
	err := format.check()
	switch {
	case err != nil:
	case format.Cache > 0:
		err = errors.New("Format.Cache is only for folders of images, expected 0 to read a single image")
	case len(format.Classes) > 0:
		err = errors.New("Format.Classes is only for folders of images, expected none to read a single image")
	}
	if err != nil {
		return data.Array{}, fmt.Errorf("images: read: %w", err)
	}
	dims := []int{format.Height, format.Width, format.Channels}
	x := make([]float32, format.Height*format.Width*format.Channels)
	if err = readImage(r, format, x, &timer{}); err != nil {
		return data.Array{}, fmt.Errorf("images: read: input: %w", err)
	}
	return data.Array{Flat: x, Dims: dims}, nil
}

// SizeError is about an image of another size than Format's, which has no Resize.
type SizeError struct {
	Height, Width int
	format        Format
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("the image has %d x %d pixels (height, width), expected %d x %d", e.Height, e.Width, e.format.Height, e.format.Width)
}

func readImage(r io.ReadSeeker, format Format, to []float32, times *timer) error {
	m := imageMemories.Get().(*imageMemory)
	defer imageMemories.Put(m)
	file, whole := m.whole(r)
	if whole {
		r = bytes.NewReader(file)
	} else if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	times.end("read")
	header, kind, err := image.DecodeConfig(r)
	if err != nil {
		return fmt.Errorf("neither a PNG nor a JPEG image that can be read: %w", err)
	}
	h, w := header.Height, header.Width
	if h < 1 || w < 1 {
		return fmt.Errorf("the image has %d x %d pixels (height, width)", h, w)
	}
	if h > format.MaxPixels/w { // h*w may overflow
		return fmt.Errorf("the image has %d x %d pixels (height, width), more than %d in all (set Format.MaxPixels): %w", h, w, format.MaxPixels, data.ErrLimit)
	}
	if format.Resize == 0 && (h != format.Height || w != format.Width) {
		return fmt.Errorf("%w, or Format.Resize as images.Stretch or images.CropCentre", &SizeError{Height: h, Width: w, format: format})
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	decoded, err := m.decode(r, kind, whole)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	times.end("decode")
	resample(decoded, format, to)
	times.end("resize")
	return nil
}

type imageMemory struct {
	file []byte
	png  png.Decoder
}

var imageMemories = sync.Pool{New: func() any { return &imageMemory{} }}

// decode's image is valid until the next call. whole: m.file holds r.
func (m *imageMemory) decode(r io.Reader, kind string, whole bool) (image.Image, error) {
	if whole && kind == "png" {
		if decoded, ok := m.png.Decode(m.file); ok {
			return decoded, nil
		}
	}
	if whole && kind == "jpeg" {
		return jpeg.Decode(r)
	}
	decoded, _, err := image.Decode(r)
	return decoded, err
}

func (m *imageMemory) whole(r io.Reader) ([]byte, bool) {
	m.file = m.file[:0]
	for {
		if len(m.file) == cap(m.file) {
			if len(m.file) >= mostSpare {
				return nil, false
			}
			m.file = slices.Grow(m.file, max(16<<10, len(m.file)))
		}
		n, err := r.Read(m.file[len(m.file):cap(m.file)])
		m.file = m.file[:len(m.file)+n]
		if err != nil {
			return m.file, err == io.EOF
		}
	}
}
