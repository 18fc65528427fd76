"""What several tests share: fakes on the wire, real daemons, runs of the engines, tables of faults."""
