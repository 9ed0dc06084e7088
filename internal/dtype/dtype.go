// Package dtype is the table of dtypes: their numbers in GoMLX and PJRT, and their names. It imports nothing, for
// packages without GoMLX.
package dtype

// Type is a dtype, by GoMLX's and PJRT's number.
type Type int

const (
	Bool Type = iota + 1
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float16
	Float32
	Float64
	BFloat16
	Complex64
	Complex128

	// Count is the last number plus one.
	Count
)

// inFile is "" if files cannot have the dtype.
type row struct{ name, inGo, inFile string }

var types = [Count]row{
	Bool: {"Bool", "bool", "BOOL"},
	Int8: {"Int8", "int8", "I8"}, Int16: {"Int16", "int16", "I16"}, Int32: {"Int32", "int32", "I32"}, Int64: {"Int64", "int64", "I64"},
	Uint8: {"Uint8", "uint8", "U8"}, Uint16: {"Uint16", "uint16", "U16"}, Uint32: {"Uint32", "uint32", "U32"}, Uint64: {"Uint64", "uint64", "U64"},
	Float16: {"Float16", "float16", "F16"}, Float32: {"Float32", "float32", "F32"}, Float64: {"Float64", "float64", "F64"},
	BFloat16: {"BFloat16", "bfloat16", "BF16"}, Complex64: {"Complex64", "complex64", "C64"}, Complex128: {"Complex128", "complex128", ""},
}

// Of returns a slice's dtype and length, or 0 if no array can have it. It runs for each field of each step: the most
// common dtypes come first.
func Of(flat any) (Type, int) {
	if flat, ok := flat.([]float32); ok {
		return Float32, len(flat)
	}
	switch flat := flat.(type) {
	case []bool:
		return Bool, len(flat)
	case []int8:
		return Int8, len(flat)
	case []int16:
		return Int16, len(flat)
	case []int32:
		return Int32, len(flat)
	case []int64:
		return Int64, len(flat)
	case []uint8:
		return Uint8, len(flat)
	case []uint16:
		return Uint16, len(flat)
	case []uint32:
		return Uint32, len(flat)
	case []uint64:
		return Uint64, len(flat)
	case []float64:
		return Float64, len(flat)
	}
	return 0, 0
}

func Named(name string) Type { return find(name, func(r row) string { return r.name }) }

func InFiles(name string) Type { return find(name, func(r row) string { return r.inFile }) }

func find(name string, of func(row) string) Type {
	for t := Bool; t < Count; t++ {
		if of(types[t]) == name && name != "" {
			return t
		}
	}
	return 0
}

func (t Type) row() row {
	if t < 0 || t >= Count {
		return row{}
	}
	return types[t]
}

func (t Type) String() string { return t.row().inGo }

func (t Type) InFile() string { return t.row().inFile }
