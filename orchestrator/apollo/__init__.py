"""The audit ``apollo``: which points were unlearned?"""
