package deletes

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/plan"
)

// A deletion vector is a blob inside a Puffin file, found by the offset and
// length that its manifest entry gives; the Puffin footer is not needed.
//
//	4 bytes  length of magic and bitmap, big endian
//	4 bytes  magic D1 D3 39 64
//	n bytes  64-bit Roaring bitmap in the portable format
//	4 bytes  CRC-32 of magic and bitmap, big endian
const (
	vectorOverhead = 12
	vectorMagic    = 0x6439d3d1 // read as little endian
)

// readVector reads the deletion vector of a data file.
func (r *Resolver) readVector(ctx context.Context, f *plan.File, dataPath string) (positionIndex, error) {
	switch {
	case f.ReferencedDataFile == nil:
		return positionIndex{}, errs.At(errs.Corrupt, "read", f.Path, "the manifest names no data file for a deletion vector")
	case *f.ReferencedDataFile != dataPath:
		return positionIndex{}, errs.At(errs.Internal, "read", f.Path, "the deletion vector is for %s and not for %s", *f.ReferencedDataFile, dataPath)
	case f.ContentOffset == nil || f.ContentSize == nil:
		return positionIndex{}, errs.At(errs.Corrupt, "read", f.Path, "the manifest gives no offset and size for a deletion vector")
	}
	index := positionIndex{charge: r.cfg.Pool.Reserve("deletion vector")}
	bitmap, err := r.loadVector(ctx, f, &index)
	if err != nil {
		index.free()
		return positionIndex{}, errs.WrapAs(errs.Corrupt, err, "read", f.Path)
	}
	index.byPath = map[string]*positionSet{dataPath: {bitmap: bitmap}}
	return index, nil
}

func (r *Resolver) loadVector(ctx context.Context, f *plan.File, index *positionIndex) (_ *roaring64.Bitmap, err error) {
	offset, size := *f.ContentOffset, *f.ContentSize
	file, err := r.cfg.FS.Open(ctx, f.Path)
	if err != nil {
		return nil, err
	}
	defer func() { err = closed(file, err, f.Path) }()
	if offset < 0 || size < vectorOverhead || offset > file.Size()-size {
		return nil, errs.New(errs.Corrupt, "a deletion vector of %d bytes at offset %d does not fit a file of %d bytes", size, offset, file.Size())
	}
	if err := index.charge.TryGrow(size); err != nil {
		return nil, err
	}
	blob := make([]byte, size)
	if n, err := file.ReadAt(blob, offset); n < len(blob) {
		if err == io.EOF || err == nil {
			return nil, errs.New(errs.Corrupt, "the file ended inside the deletion vector at offset %d", offset)
		}
		return nil, errs.Wrap(err, "read", f.Path)
	}
	return parseVector(blob, f.RecordCount, index.charge.TryGrow)
}

// containerCost is about what a container takes up beside its values, which
// stay in the blob.
const containerCost = 96

// parseVector checks a deletion vector's frame and bitmap and returns the
// bitmap, which keeps using the blob's memory. charge is asked for what the
// bitmap needs beside that.
func parseVector(blob []byte, cardinality int64, charge func(int64) error) (*roaring64.Bitmap, error) {
	if len(blob) < vectorOverhead {
		return nil, errs.New(errs.Corrupt, "the deletion vector has %d bytes, less than an empty one", len(blob))
	}
	body := blob[4 : len(blob)-4]
	if length := binary.BigEndian.Uint32(blob); uint64(length) != uint64(len(body)) {
		return nil, errs.New(errs.Corrupt, "the deletion vector says that it has %d bytes, the manifest says %d", length, len(body))
	}
	if magic := binary.LittleEndian.Uint32(body); magic != vectorMagic {
		return nil, errs.New(errs.Corrupt, "the bytes at the given offset are no deletion vector (magic % x)", body[:4])
	}
	if want, have := binary.BigEndian.Uint32(blob[len(blob)-4:]), crc32.ChecksumIEEE(body); want != have {
		return nil, errs.New(errs.Corrupt, "the deletion vector's checksum is %08x, its bytes have %08x", want, have)
	}
	found, err := checkBitmap(body[4:])
	if err != nil {
		return nil, err
	}
	if found.positions != uint64(cardinality) {
		return nil, errs.New(errs.Corrupt, "the deletion vector has %d positions, the manifest says %d", found.positions, cardinality)
	}
	if err := charge(int64(found.containers) * containerCost); err != nil {
		return nil, err
	}
	bitmap := roaring64.New()
	if _, err := bitmap.FromUnsafeBytes(body[4:]); err != nil {
		return nil, errs.WrapAs(errs.Corrupt, err, "parse", "")
	}
	return bitmap, nil
}

// The portable Roaring format, per 32-bit bitmap: a cookie that says whether
// run containers occur, then a header of (high bits, cardinality - 1) for each
// container, offsets, and the containers.
const (
	cookieRuns      = 12347 // low 16 bits; the high ones are the number of containers - 1
	cookieNoRuns    = 12346
	noOffsetBelow   = 4    // with runs, offsets are left out for fewer containers
	arrayMax        = 4096 // values; larger containers are bitmaps of 8 KiB
	bitmapContainer = 8192
)

// contents is what a bitmap holds.
type contents struct {
	positions  uint64
	containers int // the 32-bit bitmaps count as containers too
}

// checkBitmap walks a 64-bit bitmap in the portable format. It makes sure that everything lies in bounds, is sorted and has
// the cardinality that it claims, so that the bytes can be used as they are.
func checkBitmap(data []byte) (found contents, err error) {
	if len(data) < 8 {
		return found, errs.New(errs.Corrupt, "the bitmap ends in its header")
	}
	bitmaps := binary.LittleEndian.Uint64(data)
	data = data[8:]
	previous := int64(-1)
	for range bitmaps {
		if len(data) < 4 {
			return found, errs.New(errs.Corrupt, "the bitmap ends before the last of its %d parts", bitmaps)
		}
		key := int64(binary.LittleEndian.Uint32(data))
		if key <= previous || key > 1<<31-1 {
			return found, errs.New(errs.Corrupt, "the bitmap's parts are not in order")
		}
		previous = key
		part, length, err := checkBitmap32(data[4:])
		if err != nil {
			return found, err
		}
		found.positions += part.positions
		found.containers += part.containers + 1
		data = data[4+length:]
	}
	if len(data) > 0 {
		return found, errs.New(errs.Corrupt, "%d bytes follow the bitmap", len(data))
	}
	return found, nil
}

func checkBitmap32(data []byte) (found contents, length int, err error) {
	ends := func() (contents, int, error) { return found, 0, errs.New(errs.Corrupt, "the bitmap ends early") }
	if len(data) < 4 {
		return ends()
	}
	cookie := binary.LittleEndian.Uint32(data)
	at := 4
	var runFlags []byte
	switch {
	case cookie&0xffff == cookieRuns:
		found.containers = int(cookie>>16) + 1
		flags := (found.containers + 7) / 8
		if len(data)-at < flags {
			return ends()
		}
		runFlags, at = data[at:at+flags], at+flags
	case cookie == cookieNoRuns:
		if len(data)-at < 4 {
			return ends()
		}
		size := binary.LittleEndian.Uint32(data[at:])
		if size > 1<<16 {
			return found, 0, errs.New(errs.Corrupt, "the bitmap claims %d containers", size)
		}
		found.containers, at = int(size), at+4
	default:
		return found, 0, errs.New(errs.Corrupt, "the bitmap starts with the unknown cookie %d", cookie)
	}
	containers := found.containers
	if len(data)-at < 4*containers {
		return ends()
	}
	header := data[at : at+4*containers]
	at += 4 * containers
	var offsets []byte
	if runFlags == nil || containers >= noOffsetBelow {
		if len(data)-at < 4*containers {
			return ends()
		}
		offsets, at = data[at:at+4*containers], at+4*containers
	}
	previous := -1
	for i := range containers {
		key := int(binary.LittleEndian.Uint16(header[4*i:]))
		if key <= previous {
			return found, 0, errs.New(errs.Corrupt, "the bitmap's containers are not in order")
		}
		previous = key
		if offsets != nil && uint64(binary.LittleEndian.Uint32(offsets[4*i:])) != uint64(at) {
			return found, 0, errs.New(errs.Corrupt, "container %d of the bitmap is not where its offset says", i)
		}
		cardinality := int(binary.LittleEndian.Uint16(header[4*i+2:])) + 1
		isRun := runFlags != nil && runFlags[i/8]>>(i%8)&1 == 1
		size, ok := checkContainer(data[at:], cardinality, isRun)
		if !ok {
			return found, 0, errs.New(errs.Corrupt, "container %d of the bitmap is damaged", i)
		}
		found.positions += uint64(cardinality)
		at += size
	}
	return found, at, nil
}

// checkContainer checks one container of 16-bit values and returns its size.
func checkContainer(data []byte, cardinality int, isRun bool) (size int, ok bool) {
	switch {
	case isRun:
		if len(data) < 2 {
			return 0, false
		}
		runs := int(binary.LittleEndian.Uint16(data))
		size = 2 + 4*runs
		if len(data) < size {
			return 0, false
		}
		next, total := 0, 0
		for i := range runs {
			start := int(binary.LittleEndian.Uint16(data[2+4*i:]))
			last := start + int(binary.LittleEndian.Uint16(data[4+4*i:]))
			if start < next || last > 0xffff {
				return 0, false
			}
			next = last + 1
			total += last - start + 1
		}
		return size, total == cardinality
	case cardinality <= arrayMax:
		size = 2 * cardinality
		if len(data) < size {
			return 0, false
		}
		previous := -1
		for i := range cardinality {
			value := int(binary.LittleEndian.Uint16(data[2*i:]))
			if value <= previous {
				return 0, false
			}
			previous = value
		}
		return size, true
	}
	if len(data) < bitmapContainer {
		return 0, false
	}
	total := 0
	for i := 0; i < bitmapContainer; i += 8 {
		total += bits.OnesCount64(binary.LittleEndian.Uint64(data[i:]))
	}
	return bitmapContainer, total == cardinality
}
