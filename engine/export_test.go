package engine

// AlwaysSpilling returns options with which everything that can spill does.
func (o Options) AlwaysSpilling() Options {
	o.alwaysSpill = true
	return o
}
