package sort

import (
	"bytes"
	"context"
	"encoding/binary"
)

// merge calls take with the rows of all runs in order; rows with equal keys
// come in the order of the runs. A row is valid until replaced is called.
//
// It is a tree of losers: an inner node holds the run that lost there, so that
// the path of the last winner alone is played again.
func merge(ctx context.Context, l *layout, runs []*run, replaced func() error, take func(row []byte) error, done func(*run) error) error {
	players := make([]player, len(runs))
	for i, r := range runs {
		players[i].reader.run = r
		if err := players[i].advance(ctx, l, replaced); err != nil {
			return err
		}
	}
	n := len(players)
	losers := make([]int, n)
	winner := start(players, losers, 1)
	for n > 0 && players[winner].row != nil {
		p := &players[winner]
		if err := take(p.row); err != nil {
			return err
		}
		if err := p.advance(ctx, l, replaced); err != nil {
			return err
		}
		if p.row == nil {
			if err := replaced(); err != nil {
				return err
			}
			if err := done(p.reader.run); err != nil {
				return err
			}
		}
		for node := (winner + n) / 2; node > 0; node /= 2 {
			if before(players, losers[node], winner) {
				winner, losers[node] = losers[node], winner
			}
		}
	}
	return nil
}

// player is a run in the tree, with the row that it plays.
type player struct {
	reader        reader
	row, key      []byte
	first, second uint64 // of the key
}

func (p *player) advance(ctx context.Context, l *layout, replaced func() error) (err error) {
	if p.row, err = p.reader.following(ctx, replaced); p.row == nil {
		return err
	}
	p.key = l.key(p.row)
	if len(p.key) >= 16 {
		p.first, p.second = binary.BigEndian.Uint64(p.key), binary.BigEndian.Uint64(p.key[8:])
		return nil
	}
	var short [16]byte
	copy(short[:], p.key)
	p.first, p.second = binary.BigEndian.Uint64(short[:]), binary.BigEndian.Uint64(short[8:])
	return nil
}

// before reports whether run a's row comes before run b's.
func before(players []player, a, b int) bool {
	x, y := &players[a], &players[b]
	switch {
	case x.row == nil || y.row == nil:
		return x.row != nil
	case x.first != y.first:
		return x.first < y.first
	case x.second != y.second:
		return x.second < y.second
	}
	if order := bytes.Compare(x.key, y.key); order != 0 {
		return order < 0
	}
	return a < b
}

// start plays the tree below a node and returns the winner. The leaf of run i
// is node n+i; depth is the logarithm of the number of runs.
func start(players []player, losers []int, node int) int {
	n := len(players)
	if n <= 1 {
		return 0
	}
	if node >= n {
		return node - n
	}
	a, b := start(players, losers, 2*node), start(players, losers, 2*node+1)
	if before(players, b, a) {
		a, b = b, a
	}
	losers[node] = b
	return a
}
