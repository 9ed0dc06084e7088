package safetensors

// SetByteOrder makes Bytes and Values do as on a machine of that byte order, until the returned function is called.
func SetByteOrder(little bool) (reset func()) {
	was := littleEndian
	littleEndian = little
	return func() { littleEndian = was }
}
