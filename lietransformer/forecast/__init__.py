"""What a sweep costs in time, memory and disk: measured steps times planned steps."""
